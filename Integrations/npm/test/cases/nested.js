'use strict';
// Nested tests that fail, run by report.test.js.

const assert = require('node:assert/strict');
const { describe, it, test } = require('node:test');
const { network } = require('slowlane');

const fail = async (t) => {
  await network(t, { upstream: '127.0.0.1:9' });
  assert.fail('nested');
};

test('parent', async (t) => {
  await t.test('sub (1)', fail);
});

describe('suite', () => {
  it('case (1)', fail);
  it('other', () => {});
});
