'use strict';

const { Fault, Network } = require('./lib/network');
const { NetworkError, findProgram } = require('./lib/program');
const { TestNetworks, pattern, quoted, relative } = require('./lib/test-networks');

/** The networks of each test, by its context. */
const contexts = new WeakMap();

function isNodeTest(context) {
  return typeof context.after === 'function' && typeof context.diagnostic === 'function';
}

function isVitest(context) {
  return typeof context.onTestFinished === 'function' && typeof context.onTestFailed === 'function';
}

function forNodeTest(context) {
  const command = (seed) => {
    const file = relative(context.filePath ?? process.argv[1]);
    return `SLOWLANE_SEED=${seed} node --test --test-name-pattern=${pattern(context.name)} ${quoted(file)}`;
  };
  const networks = new TestNetworks(context.fullName ?? context.name, command);
  context.after(async () => {
    // Node 18 does not tell whether the test has passed.
    const hasFailed = 'passed' in context ? !context.passed && context.error != null : undefined;
    const { error, section } = await networks.end(hasFailed);
    if (error) throw error;
    for (const line of section.split('\n').filter(Boolean)) context.diagnostic(line);
  });
  return networks;
}

function forVitest(context) {
  const { task } = context;
  const names = [];
  for (let entry = task; entry && entry.name; entry = entry.suite) names.unshift(entry.name);
  const name = names.join(' ');
  const file = relative(task.file?.filepath);
  const networks = new TestNetworks(name, (seed) => `SLOWLANE_SEED=${seed} npx vitest run ${quoted(file)} -t ${pattern(name)}`);
  context.onTestFinished(async () => {
    const { error, section } = await networks.end(task.result?.state === 'fail');
    if (error) throw error;
    if (section) console.error(section);
  });
  return networks;
}

/** Creates a network of a test of node:test or Vitest; `context` is the first argument of the test's function. */
async function network(context, options) {
  let networks = context && contexts.get(context);
  if (!networks) {
    if (context && isNodeTest(context)) networks = forNodeTest(context);
    else if (context && isVitest(context)) networks = forVitest(context);
    else throw new NetworkError("network() needs the context of a test, as in 'test(name, async (t) => { await network(t, {...}) })'; Jest has 'slowlane/jest'");
    contexts.set(context, networks);
  }
  return networks.create(options);
}

exports.network = network;
exports.findProgram = findProgram;
exports.Fault = Fault;
exports.Network = Network;
exports.NetworkError = NetworkError;
