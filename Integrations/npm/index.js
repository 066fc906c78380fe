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

/**
 * Returns the names of a test of node:test and of the tests around it, outermost first. A pattern of each is needed to run a subtest; one
 * of a suite would run all of its tests. The calls on the stack tell tests from suites.
 */
function testNames(context) {
  const full = context.fullName ?? context.name;
  const outer = full.endsWith(` > ${context.name}`) ? full.slice(0, -context.name.length - 3).split(' > ') : [];
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 200;
  const tests = new Error().stack.match(/ Test\.run \(/g) ?? [];
  Error.stackTraceLimit = limit;
  return [...outer.slice(outer.length - Math.min(outer.length, Math.max(0, tests.length - 1))), context.name];
}

/** Returns the options of node, such as `--import tsx`, without those of the test runner, of a debugger and of a watcher. */
function nodeOptions() {
  const kept = [];
  let hasDroppedName = false;
  for (const word of process.execArgv) {
    const isDropped = /^--(test|inspect|watch)/.test(word);
    // A word without a hyphen is the value of the option before it.
    if (!isDropped && (word.startsWith('-') || !hasDroppedName)) kept.push(word);
    if (word.startsWith('-')) hasDroppedName = isDropped && !word.includes('=');
  }
  return kept;
}

function forNodeTest(context) {
  const names = testNames(context);
  const command = (seed) => {
    const patterns = names.map((name) => `--test-name-pattern=${pattern(name)}`);
    const file = relative(context.filePath ?? process.argv[1]);
    return [`SLOWLANE_SEED=${seed} node`, ...nodeOptions().map(quoted), '--test', ...patterns, quoted(file)].join(' ');
  };
  const networks = new TestNetworks(context.fullName ?? context.name, command);
  context.after(async () => {
    // Node 18 does not tell whether the test has passed.
    const hasFailed = 'passed' in context ? !context.passed && context.error != null : undefined;
    const { error, section } = await networks.end(hasFailed);
    if (error) throw error;
    const lines = section.split('\n').filter(Boolean);
    for (const line of lines) context.diagnostic(line);
    // The reporter junit writes diagnostics as comments only. It adds ' {' and the properties of the error to the stack.
    const cause = context.error?.cause;
    if (cause instanceof Error && lines.length) Reflect.set(cause, 'stack', `${cause.stack}\n${lines.at(-1)}\n`);
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
