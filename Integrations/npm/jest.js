'use strict';
// For Jest with its runner jest-circus (the default). The module registers a hook `afterEach` in the file that imports it.

const { Fault, Network } = require('./lib/network');
const { NetworkError, findProgram } = require('./lib/program');
const { TestNetworks, pattern, quoted, relative } = require('./lib/test-networks');

let current;

/** Returns whether the test that runs has failed. jest-circus keeps its state under a symbol of the global object; without it, false. */
function hasFailed() {
  const symbol = Object.getOwnPropertySymbols(globalThis).find((found) => found.description === 'JEST_STATE_SYMBOL');
  return (globalThis[symbol]?.currentlyRunningTest?.errors?.length ?? 0) > 0;
}

afterEach(async () => {
  const networks = current;
  current = undefined;
  if (!networks) return;
  const { error, section } = await networks.end(hasFailed());
  if (error) throw error;
  // An error of its own, because Jest shows the errors of a test together.
  if (section) throw new NetworkError(`the test failed on this network:\n${section}`);
});

/** Creates a network of the test that runs. */
async function network(options) {
  const { currentTestName: name, testPath } = expect.getState();
  if (!name) throw new NetworkError('network() must be called in a test');
  if (current?.name !== name) {
    current = new TestNetworks(name, (seed) => `SLOWLANE_SEED=${seed} npx jest ${quoted(relative(testPath))} -t ${pattern(name)}`);
  }
  return current.create(options);
}

exports.network = network;
exports.findProgram = findProgram;
exports.Fault = Fault;
exports.Network = Network;
exports.NetworkError = NetworkError;
