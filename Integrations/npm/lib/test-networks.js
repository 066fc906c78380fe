'use strict';
// The networks of one test: their creation, the check of their faults, their end, and the text of a failure.

const path = require('node:path');
const { Network, runSeed } = require('./network');
const { NetworkError } = require('./program');

class TestNetworks {
  /** `name` is the full name of the test; `command(seed)` returns the command that repeats it. */
  constructor(name, command) {
    this.name = name;
    this.command = command;
    this.networks = [];
    this.created = 0;
  }

  async create(options) {
    const index = this.created;
    this.created += 1;
    const network = await Network.create(this.name, index, options);
    this.networks.push(network);
    return network;
  }

  /** Rejects if a fault that must fire has not fired. */
  async check() {
    for (const network of this.networks) await network.checkFaults();
  }

  /** Resolves to the section that a failure shows; without networks to an empty text. */
  async describe() {
    if (!this.networks.length) return '';
    const lines = (await Promise.all(this.networks.map((network) => network.describe()))).flat();
    return [...lines, `repeat with: ${this.command(runSeed())}`].join('\n');
  }

  async close() {
    const networks = this.networks.splice(0);
    // A server that has ended has no proxies; a failed call has already failed the test.
    await Promise.all(networks.map((network) => network.close().catch(() => {})));
  }

  /**
   * Ends a test: closes its networks, and resolves to the section of a failure and to the error of a fault that has not fired, if any.
   * `hasFailed` is undefined if the framework does not tell it; the section is then that of any test.
   */
  async end(hasFailed) {
    let error;
    if (hasFailed !== true) await this.check().catch((found) => { error = found; });
    const section = hasFailed !== false || error ? await this.describe() : '';
    await this.close();
    if (error) error = new NetworkError(`${error.message}\n${section}`);
    return { error, section };
  }
}

/** Returns a text as one word of a POSIX shell. */
function quoted(text) {
  return /^[A-Za-z0-9_./:=@%+-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}

/** Returns a regular expression that matches a name, without characters that a shell or a reporter changes. */
function pattern(name) {
  return `'^${name.replace(/[^A-Za-z0-9_ -]/g, '.')}$'`;
}

/** Returns a path as seen from the working directory. */
function relative(file) {
  return file ? path.relative(process.cwd(), file) || file : '';
}

module.exports = { TestNetworks, pattern, quoted, relative };
