import type { Network, NetworkOptions } from './index';
export { Fault, Network, NetworkError, findProgram } from './index';
export type { FaultOptions, Link, LinkOptions, NetworkOptions, ToxicOptions } from './index';

/** Creates a network of the test of Jest that runs. The network is removed after the test. */
export function network(options?: NetworkOptions): Promise<Network>;
