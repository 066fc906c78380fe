'use strict';
// The network of a test: one proxy of the server.

const crypto = require('node:crypto');
const fs = require('node:fs');
const { NetworkError } = require('./program');
const { runningServer } = require('./server');
const { Trust } = require('./trust');

const PASS_THROUGH = { conditions: { down: {}, up: {} } };
const LINK_KEYS = ['profile', 'timeline', 'netem', 'conditions'];
const FORWARD_KEYS = ['to', 'map'];
const TLS_KEYS = ['intercept', 'upstreamCA'];
const OPTION_KEYS = [...LINK_KEYS, 'upstream', 'forward', ...FORWARD_KEYS, ...TLS_KEYS, 'program', 'seed', 'name'];
const SEED_MAX = 2n ** 63n - 1n;

/** Returns the API's form of a link: `given` is the name of a profile, or an object with one of the keys of a link. */
function linkSetting(given) {
  if (given === undefined || given === null) return PASS_THROUGH;
  if (typeof given === 'string') return { profile: given };
  const unknown = Object.keys(given).filter((key) => !LINK_KEYS.includes(key));
  if (unknown.length) throw new NetworkError(`a link has one of the keys ${LINK_KEYS.join(', ')}, not ${unknown.join(', ')}`);
  const entries = Object.entries(given).filter(([, value]) => value !== undefined && value !== null);
  if (entries.length > 1) throw new NetworkError(`give one of ${LINK_KEYS.join(', ')}, not ${entries.map(([key]) => key).join(' and ')}`);
  return entries.length ? Object.fromEntries(entries) : PASS_THROUGH;
}

/** Returns the API's form of the servers: an upstream, or the rules and maps of a forward proxy. */
function servers({ upstream, forward, to, map }) {
  if (!forward) {
    const address = upstream ?? process.env.SLOWLANE_UPSTREAM;
    if (to || map) throw new NetworkError("'to' and 'map' need 'forward: true'");
    if (!address) throw new NetworkError("no server is given; use the option 'upstream', such as '127.0.0.1:8000', 'forward: true', or SLOWLANE_UPSTREAM");
    return { upstream: upstreamAddress(address) };
  }
  if (upstream) throw new NetworkError('give upstream or forward, not both; clients of a forward proxy name the server');
  const rule = ([pattern, link]) => (typeof link === 'string' ? `${pattern}=${link}` : { pattern, link });
  return { forward: true, to: Object.entries(to ?? {}).map(rule), map: Object.entries(map ?? {}).map((entry) => entry.join('=')) };
}

/** Returns the API's form of the hosts whose TLS is intercepted, and of the authorities of the servers. */
function tlsSetting({ intercept, upstreamCA }) {
  const setting = {};
  if (intercept === true) setting.intercept_all = true;
  else if (Array.isArray(intercept)) setting.intercept = intercept;
  else if (intercept) throw new NetworkError("intercept is a list of hosts, such as ['api.test'], or true for every host");
  if (upstreamCA === undefined || upstreamCA === null) return setting;
  try {
    setting.upstream_tls = { ca: fs.readFileSync(upstreamCA, 'utf8') };
  } catch (error) {
    throw new NetworkError(`upstreamCA '${upstreamCA}' cannot be read: ${error.message}`);
  }
  return setting;
}

/** Returns a short text for a link. */
function linkText(setting) {
  if (setting === PASS_THROUGH) return 'no conditions';
  const [[key, value]] = Object.entries(setting);
  return typeof value === 'string' ? value : `${key} ${JSON.stringify(value)}`;
}

let drawnSeed;

/** Returns the seed of the run as a decimal number: that of the environment variable SLOWLANE_SEED, else one drawn in this process. */
function runSeed() {
  const given = process.env.SLOWLANE_SEED;
  if (given === undefined || given === '') return (drawnSeed ??= String(crypto.randomInt(2 ** 32)));
  if (!/^\d{1,19}$/.test(given) || BigInt(given) > SEED_MAX) throw new NetworkError(`SLOWLANE_SEED '${given}' must be a number from 0 to 2^63 - 1`);
  return String(BigInt(given));
}

/** Returns the seed of a network: 48 bits, so that JavaScript's numbers are exact. The test's name decides, not the order of tests. */
function networkSeed(test, index) {
  return crypto.createHash('sha256').update(`${runSeed()}/${test}/${index}`).digest().readUIntBE(0, 6);
}

/** The number of networks of this process, in their names. */
let count = 0;

/** A proxy between the code under test and its server. */
class Network {
  constructor(server, name, created, upstream, setting, seed) {
    this._server = server;
    this._name = name;
    this._initial = this._setting = setting;
    this._faults = new Set();
    this._start = performance.now();
    this.log = [];
    this.seed = seed;
    this.runSeed = runSeed();
    this.upstream = upstream;
    /** The certificate of the authority that clients of intercepted connections must trust. */
    this.ca = undefined;
    const colon = created.listen.lastIndexOf(':');
    this.host = created.listen.slice(0, colon);
    this.port = Number(created.listen.slice(colon + 1));
  }

  /** Creates the network with number `index` of the test named `test`. */
  static async create(test, index, options = {}) {
    const unknown = Object.keys(options).filter((key) => !OPTION_KEYS.includes(key));
    if (unknown.length) throw new NetworkError(`a network has the options ${OPTION_KEYS.join(', ')}, not ${unknown.join(', ')}`);
    const definition = { ...servers(options), ...tlsSetting(options) };
    const setting = linkSetting(Object.fromEntries(LINK_KEYS.map((key) => [key, options[key]])));
    const seed = options.seed ?? networkSeed(test, index);
    if (!Number.isSafeInteger(seed) || seed < 0) throw new NetworkError(`the seed ${seed} must be an integer from 0 to 2^53 - 1`);
    const server = await runningServer(options.program);
    count += 1;
    const name = `${test.replace(/[^A-Za-z0-9_.]+/g, '-').slice(0, 100)}-${count}`;
    const body = { ...definition, name, listen: '127.0.0.1:0', link: setting, seed };
    const created = await server.call('POST', '/proxies', body);
    const network = new Network(server, name, created, body.upstream, setting, seed);
    if (body.intercept || body.intercept_all) network.ca = (await network.status()).intercept?.certificate;
    return network;
  }

  get address() { return `${this.host}:${this.port}`; }

  get url() { return `http://${this.address}`; }

  get proxyUrl() {
    if (this.upstream !== undefined) throw new NetworkError("the network has an upstream; 'forward: true' gives the test a forward proxy");
    return this.url;
  }

  /** The variables of this process, and those by which programs use the proxy and trust its authority. */
  get environment() {
    const variables = {};
    if (this.upstream === undefined || !this.ca) {
      const socks = `socks5h://${this.address}`;
      for (const [name, value] of Object.entries({ http_proxy: this.proxyUrl, https_proxy: this.proxyUrl, all_proxy: socks, no_proxy: '' })) {
        variables[name] = variables[name.toUpperCase()] = value;
      }
      variables.NODE_USE_ENV_PROXY = '1';
    }
    if (this.ca) this._trust ??= new Trust(this.ca);
    return { ...process.env, ...variables, ...this._trust?.variables };
  }

  /** Replaces the conditions. */
  async link(given) { await this._apply(linkSetting(given), 'link'); }

  async outage(during) { return this._during({ profile: '100-loss' }, during); }

  async offline(during) { return this._during({ profile: 'offline' }, during); }

  async restore() {
    for (const toxic of await this._call('GET', '/proxies/%s/toxics')) await this._call('DELETE', `/proxies/%s/toxics/${encodeURIComponent(toxic.name)}`);
    for (const fault of [...this._faults]) await fault.remove();
    await this._apply(this._initial, 'restore');
  }

  async _during(setting, during) {
    const earlier = this._setting;
    await this._apply(setting, 'link');
    if (!during) return undefined;
    try {
      return await during(this);
    } finally {
      await this._apply(earlier, 'restore');
    }
  }

  async _apply(setting, verb) {
    await this._call('PUT', '/slowlane/v1/proxies/%s/link', setting);
    this._setting = setting;
    this._record(`${verb}: ${linkText(setting)}`);
  }

  async disconnect(how = 'reset') {
    let number = 0;
    for (const connection of await this.connections()) {
      try {
        await this._call('DELETE', `/slowlane/v1/proxies/%s/connections/${connection.number}?how=${encodeURIComponent(how)}`);
        number += 1;
      } catch (error) {
        // The connection may have ended meanwhile.
        if (error.status !== 404) throw error;
      }
    }
    this._record(`disconnect: ${number} ${number === 1 ? 'connection' : 'connections'} (${how})`);
    return number;
  }

  async toxic(type, attributes = {}, { stream = 'downstream', toxicity = 1, name } = {}) {
    const body = { type, stream, toxicity, attributes };
    if (name) body.name = name;
    const added = await this._call('POST', '/proxies/%s/toxics', body);
    this._record(`toxic: ${added.name} ${JSON.stringify(attributes)}`);
    return added.name;
  }

  async removeToxic(name) {
    await this._call('DELETE', `/proxies/%s/toxics/${encodeURIComponent(name)}`);
    this._record(`toxic removed: ${name}`);
  }

  async fault(rule, { mustFire = true } = {}) {
    const warnings = [];
    const added = await this._call('POST', '/slowlane/v1/proxies/%s/faults', { rule }, warnings);
    const fault = new Fault(this, added, mustFire, warnings);
    this._faults.add(fault);
    this._record(`fault added: ${fault.rule}`);
    return fault;
  }

  /** Rejects with a NetworkError if a fault that must fire has not fired. */
  async checkFaults() {
    for (const fault of this._faults) await fault.check();
  }

  conditions() { return this._call('GET', '/slowlane/v1/proxies/%s/link'); }

  status() { return this._call('GET', '/slowlane/v1/proxies/%s'); }

  connections() { return this._call('GET', '/slowlane/v1/proxies/%s/connections'); }

  async hosts() { return (await this._call('GET', '/slowlane/v1/proxies/%s/hosts')).hosts; }

  get summary() { return `${this.address} -> ${this.upstream ?? 'any server'}, ${linkText(this._initial)}, seed ${this.seed}`; }

  /** Resolves to lines that describe the network and what was done to it. */
  async describe() {
    const lines = [`network ${this.summary}`];
    try {
      const status = await this.status();
      lines.push(
        `${status.connections_accepted} connections, ${status.connections_open} open; ${status.sent_bytes.up} bytes up, ` +
          `${status.sent_bytes.down} bytes down; ${status.dials_failed} failed dials`);
      for (const fault of this._faults) lines.push(`fault ${fault.rule}: ${await fault.counts()}`);
    } catch (error) {
      lines.push(`no status: ${error.message}`);
    }
    return lines.concat(this.log.map(([seconds, text]) => `${seconds.toFixed(3).padStart(8)} s  ${text}`));
  }

  async close() {
    this._trust?.remove();
    await this._call('DELETE', '/proxies/%s');
  }

  _call(method, path, body, warnings) {
    return this._server.call(method, path.replace('%s', encodeURIComponent(this._name)), body, warnings);
  }

  _record(text) { this.log.push([(performance.now() - this._start) / 1000, text]); }
}

/** Returns `host:port`: a number is a port of this machine, and the scheme of an http URL is removed. */
function upstreamAddress(upstream) {
  if (typeof upstream === 'number') return `127.0.0.1:${upstream}`;
  const text = String(upstream);
  return /^\d+$/.test(text) ? `127.0.0.1:${text}` : text.replace(/^http:\/\//, '').replace(/\/$/, '');
}

/** A fault rule of a network. */
class Fault {
  constructor(network, added, mustFire, warnings) {
    this._network = network;
    this._path = `/slowlane/v1/proxies/%s/faults/${encodeURIComponent(added.name)}`;
    // Why the fault may miss requests: connections that were open before.
    this._warnings = warnings;
    this.rule = added.rule;
    this.mustFire = mustFire;
    /** The last status of a removed fault. */
    this._last = undefined;
  }

  async status() { return this._last ?? this._network._call('GET', this._path); }

  async fired() { return (await this.status()).fired; }

  async check() {
    if (!this.mustFire) return;
    const { fired, matched } = await this.status();
    if (fired > 0) return;
    const text = `the fault '${this.rule}' did not fire; ${matched} ${matched === 1 ? 'request' : 'requests'} matched`;
    throw new NetworkError([text, ...this._warnings].join('; '));
  }

  /** Resolves to the counts as a text. */
  async counts() {
    const { matched, fired } = await this.status();
    return `matched ${matched}, fired ${fired}`;
  }

  async remove() {
    if (!this._network._faults.delete(this)) return;
    this._last = await this.status();
    await this._network._call('DELETE', this._path);
    this._network._record(`fault removed: ${this.rule} (${await this.counts()})`);
  }
}

module.exports = { Fault, Network, runSeed };
