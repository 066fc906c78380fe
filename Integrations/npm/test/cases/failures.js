'use strict';
// Tests that fail, run by report.test.js.

const assert = require('node:assert/strict');
const test = require('node:test');
const { network } = require('slowlane');

test("fails (after an 'outage')", async (t) => {
  const net = await network(t, { upstream: '127.0.0.1:9', profile: '3g-lossy' });
  await net.outage(() => {});
  assert.equal(net.seed, 'shown');
});

test('has a fault that does not fire', async (t) => {
  const net = await network(t, { upstream: '127.0.0.1:9' });
  await net.fault('POST /orders before-response reset');
  await net.fault('PUT /orders before-response reset', { mustFire: false });
});

test('passes', async (t) => {
  await network(t, { upstream: '127.0.0.1:9' });
});
