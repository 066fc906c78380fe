'use strict';

const assert = require('node:assert/strict');
const http = require('node:http');
const test = require('node:test');
const { NetworkError, network } = require('slowlane');
const startShop = require('./server');

/** Resolves to the body of a response. A connection of its own, so that a reset is not repaired by a pool. */
function send(method, url, timeout = 10_000) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, agent: false, timeout }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => { text += part; }).on('end', () => resolve(text)).on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error('timed out')));
    request.on('error', reject).end();
  });
}

/** A client that sends an order again when the response is lost: the defect that the next test detects. */
async function order(url) {
  try {
    return await send('POST', `${url}/orders`);
  } catch {
    return send('POST', `${url}/orders`);
  }
}

test('a lost response makes a naive client order twice', async (t) => {
  const shop = await startShop(t);
  const net = await network(t, { upstream: shop.upstream });
  const fault = await net.fault('POST /orders nth 1 before-response reset');
  assert.equal(await order(net.url), '2 orders');
  assert.equal(shop.orders, 2);
  assert.equal(await fault.fired(), 1);
  assert.ok((await net.describe()).includes('fault POST /orders before-response reset: matched 2, fired 1'), await net.describe());
  await fault.remove();
  assert.equal(await fault.fired(), 1);
  await fault.check();
});

test('a round trip is not shorter than that of the profile', async (t) => {
  const shop = await startShop(t);
  const net = await network(t, { upstream: `http://${shop.upstream}/`, profile: '3g' });
  const start = performance.now();
  assert.equal(await send('GET', net.url), '0 orders');
  // The handshake and the exchange take two round trips of 200 ms.
  assert.ok(performance.now() - start >= 400);
  assert.equal((await net.conditions()).profile, '3g');
});

test('an outage lasts until the end of its function, also if it throws', async (t) => {
  const shop = await startShop(t);
  const net = await network(t, { upstream: shop.upstream });
  await net.outage(async () => assert.rejects(send('GET', net.url, 300)));
  await assert.rejects(net.outage(() => { throw new Error('the test failed'); }), /the test failed/);
  assert.equal(await send('GET', net.url), '0 orders');
  assert.deepEqual(net.log.map(([, text]) => text), ['link: 100-loss', 'restore: no conditions', 'link: 100-loss', 'restore: no conditions']);
});

test('offline connections fail at once', async (t) => {
  const shop = await startShop(t);
  const net = await network(t, { upstream: shop.upstream, netem: { down: 'delay 1ms' } });
  await net.offline();
  await assert.rejects(send('GET', net.url), /ECONNREFUSED/);
  await net.restore();
  assert.equal(await send('GET', net.url), '0 orders');
});

test('a toxic lasts until restore, and connections can be aborted', async (t) => {
  const shop = await startShop(t);
  const net = await network(t, { upstream: shop.upstream });
  assert.equal(await net.toxic('latency', { latency: 300 }), 'latency_downstream');
  const start = performance.now();
  await send('GET', net.url);
  assert.ok(performance.now() - start >= 300);
  await net.toxic('timeout', { timeout: 0 });
  const request = assert.rejects(send('GET', net.url), /ECONNRESET|socket hang up/);
  while ((await net.connections()).length === 0) await new Promise(setImmediate);
  assert.ok(await net.disconnect() > 0);
  await request;
  await net.removeToxic('timeout_downstream');
  await net.restore();
  assert.deepEqual(await net._call('GET', '/proxies/%s/toxics'), []);
});

test('networks of one test have seeds of their own, and the seed of an option wins', async (t) => {
  const one = await network(t, { upstream: 9 });
  const two = await network(t, { upstream: 9 });
  const three = await network(t, { upstream: 9, seed: 7 });
  assert.notEqual(one.seed, two.seed);
  assert.equal(three.seed, 7);
  assert.equal((await three.status()).seed, 7);
  assert.equal(one.upstream, '127.0.0.1:9');
});

test('wrong arguments name the right ones', async (t) => {
  const options = { upstream: 9 };
  const refused = (given, text) => assert.rejects(network(t, given), (error) => error instanceof NetworkError && text.test(error.message));
  await refused({ ...options, profile: 'edgy' }, /unknown profile 'edgy'; did you mean 'edge'\?/);
  await refused({ ...options, profile: 'edge', timeline: '0s: 3g' }, /profile and timeline/);
  await refused({ ...options, profil: 'edge' }, /not profil/);
  await refused({ ...options, seed: 1.5 }, /the seed 1.5/);
  await refused({ profile: 'edge' }, /no server is given/);
  await assert.rejects(network(undefined, options), /needs the context of a test/);
  const net = await network(t, options);
  await assert.rejects(net.toxic('latency', { latenzy: 1 }), /latenzy/);
  await assert.rejects(net.fault('POST nowhere'), NetworkError);
});
