/** Conditions of one direction, with the keys of profile files. */
export type DirectionConditions = Record<string, unknown>;

/** Conditions: the name of a profile, or one of these keys. */
export interface LinkOptions {
  /** A profile, such as "edge"; `slowlane profiles list` prints their names. */
  profile?: string;
  /** A timeline, such as "0s: 3g, 20s: 100-loss, 50s: edge". */
  timeline?: string;
  /** Expressions of Linux's tc netem, such as { down: "delay 100ms loss 2%" }. */
  netem?: { down?: string; up?: string };
  /** The keys of profile files, such as { down: { rate: "780 kbit/s" }, up: {} }. */
  conditions?: { down?: DirectionConditions; up?: DirectionConditions } & Record<string, unknown>;
}

export type Link = string | LinkOptions;

export interface NetworkOptions extends LinkOptions {
  /** The server under test: "host:port", a port of this machine, or an http URL (default: the environment variable SLOWLANE_UPSTREAM). */
  upstream?: string | number;
  /** A forward proxy, whose clients name their servers, instead of a proxy with one upstream. */
  forward?: boolean;
  /** Conditions of patterns of hosts in a forward network: a profile, "block" or another action, or a link. */
  to?: Record<string, string | LinkOptions>;
  /** Addresses to connect in place of hosts, such as { "api.test": "127.0.0.1:8443" }. */
  map?: Record<string, string>;
  /** The hosts whose TLS is intercepted, so that faults see their requests, such as ["api.test"]; true for every host. */
  intercept?: string[] | true;
  /** The PEM file of the authorities of the servers behind intercepted connections (default: those of the system). */
  upstreamCA?: string;
  /** The program: a path, or a name on PATH (default: the environment variable SLOWLANE_PROGRAM, this package's program, PATH). */
  program?: string;
  /** The random seed of this network, an integer from 0 to 2^53 - 1 (default: derived from the seed of the run and the name of the test). */
  seed?: number;
}

export interface ToxicOptions {
  /** Default: "downstream". */
  stream?: 'upstream' | 'downstream';
  /** The share of connections, from 0 to 1 (default: 1). */
  toxicity?: number;
  name?: string;
}

export interface FaultOptions {
  /** Whether the test fails if the fault has not fired by its end (default: true). */
  mustFire?: boolean;
}

/** A call that the server refused, or a server that could not be started. */
export class NetworkError extends Error {
  /** The HTTP status of a refused call. */
  readonly status?: number;
}

/** A fault rule of a network. */
export class Fault {
  /** The rule in the server's notation. */
  readonly rule: string;
  mustFire: boolean;
  /** The response of GET /slowlane/v1/proxies/NAME/faults/FAULT; the last one if the fault has been removed. */
  status(): Promise<{ matched: number; applied: number; fired: number } & Record<string, unknown>>;
  /** How often the fault has fired, also after its removal. */
  fired(): Promise<number>;
  /** Rejects if the fault must fire and has not fired. */
  check(): Promise<void>;
  /** Removes the fault, which then need not fire. */
  remove(): Promise<void>;
}

/** A proxy between the code under test and its server. */
export class Network {
  private constructor();
  /** The host to connect to. */
  readonly host: string;
  /** The port to connect to. */
  readonly port: number;
  /** "127.0.0.1:49321" */
  readonly address: string;
  /** "http://127.0.0.1:49321" */
  readonly url: string;
  /** The address of the server behind the proxy. */
  readonly upstream?: string;
  /** The seed of every random choice of the network: lost packets, jitter, toxicity. */
  readonly seed: number;
  /** The seed of the run, a decimal number from 0 to 2^63 - 1: that of SLOWLANE_SEED, or drawn. */
  readonly runSeed: string;
  /** The addresses, the conditions that the test began with, and the seed. */
  readonly summary: string;
  /** What was done to the network: seconds since its start, and a text. */
  readonly log: ReadonlyArray<[number, string]>;

  /** The URL of the forward proxy; SOCKS on the same port. Throws in a network with an upstream. */
  readonly proxyUrl: string;
  /** The certificate of the authority that clients of intercepted connections must trust, in PEM form. */
  readonly ca?: string;
  /** The variables of this process, and those by which programs use the proxy and trust its authority: for child processes. */
  readonly environment: Record<string, string | undefined>;
  /** The destinations that the clients of a forward network have named. */
  hosts(): Promise<Array<Record<string, unknown>>>;

  /** Replaces the conditions; without an argument, by none. */
  link(link?: Link): Promise<void>;
  /** Loses every packet: open connections stall, new ones time out. With a function, until the function ends; resolves to its value. */
  outage(): Promise<void>;
  outage<T>(during: (network: Network) => T | Promise<T>): Promise<T>;
  /** Aborts open connections, and lets new ones fail at once. With a function, until the function ends; resolves to its value. */
  offline(): Promise<void>;
  offline<T>(during: (network: Network) => T | Promise<T>): Promise<T>;
  /** Restores the conditions that the test began with, and removes all toxics and faults. */
  restore(): Promise<void>;
  /** Aborts (RST) or closes (FIN) every open connection; resolves to their number. */
  disconnect(how?: 'reset' | 'close'): Promise<number>;

  /** Adds a fault of HTTP exchanges, such as "POST /orders before-response reset". */
  fault(rule: string, options?: FaultOptions): Promise<Fault>;
  /** Adds a toxic, such as toxic("latency", { latency: 500 }); resolves to its name. */
  toxic(type: string, attributes?: Record<string, number>, options?: ToxicOptions): Promise<string>;
  removeToxic(name: string): Promise<void>;

  /** The response of GET /slowlane/v1/proxies/NAME/link. */
  conditions(): Promise<Record<string, unknown>>;
  /** The response of GET /slowlane/v1/proxies/NAME. */
  status(): Promise<Record<string, unknown>>;
  /** The response of GET /slowlane/v1/proxies/NAME/connections. */
  connections(): Promise<Array<Record<string, unknown>>>;
  /** Lines that describe the network and what was done to it. */
  describe(): Promise<string[]>;
}

/** The context of a test of node:test. */
export interface NodeTestContext {
  readonly name: string;
  after(hook: () => Promise<void>): void;
  diagnostic(message: string): void;
}

/** The context of a test of Vitest. */
export interface VitestContext {
  readonly task: { readonly name: string };
  onTestFinished(hook: () => Promise<void>): unknown;
  onTestFailed(hook: () => Promise<void>): unknown;
}

/**
 * Creates a network of a test of node:test or Vitest; `context` is the first argument of the test's function. The network is removed after
 * the test. Rejects with a NetworkError if the program is missing, or if the server refuses an option.
 */
export function network(context: NodeTestContext | VitestContext, options?: NetworkOptions): Promise<Network>;

/** Returns the path of the program; throws a NetworkError if there is none. */
export function findProgram(configured?: string): string;
