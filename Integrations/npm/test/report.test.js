'use strict';

const assert = require('node:assert/strict');
const { execFileSync, spawnSync } = require('node:child_process');
const path = require('node:path');
const test = require('node:test');

const root = path.join(__dirname, '..');
const cases = path.join('test', 'cases', 'failures.js');
const { NODE_TEST_CONTEXT: _, ...environment } = process.env;

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
