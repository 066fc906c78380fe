'use strict';

const assert = require('node:assert/strict');
const { execFileSync, spawnSync } = require('node:child_process');
const path = require('node:path');
const test = require('node:test');

const root = path.join(__dirname, '..');
const cases = path.join('test', 'cases', 'failures.js');
const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
/** Whether node tells the names of the tests around a test: from 20.16 on. */
const [major, minor] = process.versions.node.split('.').map(Number);
const hasFullNames = major > 20 || (major === 20 && minor >= 16);

function run(command, variables = {}) {
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', command], { cwd: root, env: { ...environment, ...variables }, encoding: 'utf8' });
  return { status, text: stdout + stderr };
}

test('a failure shows the seed, the changes and the command that repeats it', () => {
  const { status, text } = run(`node --test --test-reporter=tap ${cases}`);
  assert.equal(status, 1);
  const [, seed] = /3g-lossy, seed (\d+)/.exec(text) ?? assert.fail(text);
  assert.match(text, /0\.\d{3} s  link: 100-loss/);
  assert.match(text, /0\.\d{3} s  restore: 3g-lossy/);
  assert.match(text, /the fault 'POST \/orders before-response reset' did not fire; 0 requests matched/);
  assert.match(text, /# pass 1\n# fail 2\n/);
  // The section of the failed test and that of the fault; none of the test that passed.
  assert.equal(text.match(/repeat with: /g).length, 2, text);
  const [, command] = /# repeat with: (SLOWLANE_SEED=.*)/.exec(text);
  const again = run(command.replace(' --test ', ' --test --test-reporter=tap '));
  assert.match(again.text, new RegExp(`3g-lossy, seed ${seed}\\n`));
  assert.match(again.text, /# pass 0\n# fail 1\n/, again.text);
});

test('a nested test has a command that runs it, with the options of node', () => {
  const nested = path.join('test', 'cases', 'nested.js');
  const { text } = run(`node --no-warnings --test --test-reporter=tap ${nested}`);
  const commands = [...text.matchAll(/# repeat with: (SLOWLANE_SEED=.*)/g)].map(([, command]) => command);
  const named = (names) => new RegExp(`^SLOWLANE_SEED=\\d+ node --no-warnings --test ${names.map((name) => `--test-name-pattern='\\^${name}\\$' `).join('')}${nested}$`);
  assert.equal(commands.length, 2, text);
  assert.match(commands[0], hasFullNames ? named(['parent', 'sub .1.']) : named(['sub .1.']));
  assert.match(commands[1], named(['case .1.']));
  if (!hasFullNames) return;
  for (const [command, name] of [[commands[0], 'sub \\(1\\)'], [commands[1], 'case \\(1\\)']]) {
    const again = run(command.replace(' --test ', ' --test --test-reporter=tap ')).text;
    assert.match(again, new RegExp(`not ok \\d+ - ${name}\n`), again);
    assert.match(again, /repeat with: /);
  }
});

test('a JUnit report of node has the command in the error', () => {
  const { text } = run(`node --test --test-reporter=junit ${cases}`);
  const failures = [...text.matchAll(/<failure[^]*?<\/failure>/g)].map(([failure]) => failure);
  assert.equal(failures.length, 2, text);
  for (const failure of failures) assert.match(failure, /repeat with: SLOWLANE_SEED=\d+ node --test /);
});

test('a missing program says what to do', () => {
  const { status, text } = run(`node --test ${cases}`, { SLOWLANE_PROGRAM: '/nowhere/slowlane' });
  assert.equal(status, 1);
  assert.match(text, /cannot find the program '\/nowhere\/slowlane' \(SLOWLANE_PROGRAM\)/);
  assert.match(run(`node --test ${cases}`, { SLOWLANE_PROGRAM: '/bin/false' }).text, /'\/bin\/false server' did not start: exit status 1/);
});

test('a killed process leaves no server', async () => {
  const script = "require('slowlane').network({ name: 'x', after() {}, diagnostic() {} }, { upstream: 9 }).then((net) => { console.log(net._server.process.pid); process.kill(process.pid, 'SIGKILL'); })";
  const pid = Number(spawnSync(process.execPath, ['-e', script], { cwd: root, encoding: 'utf8' }).stdout);
  assert.ok(pid > 0);
  const isAlive = () => {
    try {
      return !/^State:\s+Z/m.test(execFileSync('cat', [`/proc/${pid}/status`], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
    } catch {
      return false;
    }
  };
  for (const deadline = Date.now() + 10_000; isAlive();) {
    assert.ok(Date.now() < deadline, 'the server runs 10 s after its parent');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});
