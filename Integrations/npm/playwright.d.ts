import type { Network, NetworkOptions } from './index';
export { Fault, Network, NetworkError, findProgram } from './index';
export type { FaultOptions, Link, LinkOptions, NetworkOptions, ToxicOptions } from './index';

export interface NetworkFixtures {
  /** The options of the fixture `network`, set by `test.use({ networkOptions: { profile: 'edge' } })`. */
  networkOptions: NetworkOptions;
  /** Creates a further network of the test. */
  makeNetwork: (options?: NetworkOptions) => Promise<Network>;
  /** The network of the test. */
  network: Network;
}

/** Fixtures for `base.extend<NetworkFixtures>(networkFixtures)`. */
export const networkFixtures: any;
