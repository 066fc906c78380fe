'use strict';

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const http2 = require('node:http2');
const https = require('node:https');
const test = require('node:test');
const tls = require('node:tls');
const { promisify } = require('node:util');
const { NetworkError, network } = require('slowlane');
const startSecureShop = require('./secure-server');

const options = { forward: true, map: { '*.test': '127.0.0.1' }, intercept: ['api.test'] };
const lost = 'POST /orders nth 2 before-response reset';

/** Resolves to a connection with TLS to api.test through the proxy. */
function connect(net, port, ALPNProtocols) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: net.host, port: net.port, method: 'CONNECT', path: `api.test:${port}`, agent: false });
    request.on('error', reject).on('connect', (_, socket) => {
      const secure = tls.connect({ socket, servername: 'api.test', ca: net.ca, ALPNProtocols }, () => resolve(secure));
      secure.on('error', reject);
    });
    request.end();
  });
}

/** Sends an order by HTTP/1.1 on a connection of its own; resolves to the response. */
async function order(net, port, text) {
  const socket = await connect(net, port, ['http/1.1']);
  return new Promise((resolve, reject) => {
    const request = https.request({ createConnection: () => socket, method: 'POST', host: 'api.test', path: '/orders' }, (response) => {
      let body = '';
      response.on('data', (part) => { body += part; }).on('end', () => resolve(body)).on('error', reject);
    });
    request.on('error', reject).end(text);
  });
}

/** Sends an order on a stream; resolves to the response. */
function orderOnStream(session, text) {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':method': 'POST', ':path': '/orders' });
    let body = '';
    stream.setEncoding('utf8').on('data', (part) => { body += part; }).on('end', () => resolve(body)).on('error', reject);
    stream.end(text);
  });
}

test('the response to the second order inside TLS is lost after the server has stored it', async (t) => {
  const shop = await startSecureShop(t, 'api.test');
  const net = await network(t, { ...options, upstreamCA: shop.ca });
  const fault = await net.fault(lost);
  assert.equal(await order(net, shop.port, 'milk'), '1 orders');
  await assert.rejects(order(net, shop.port, 'bread'), /ECONNRESET|socket hang up/);
  assert.deepEqual(shop.orders, ['1.1 milk', '1.1 bread']);
  assert.equal(await fault.fired(), 1);
  const [{ host, connections }] = await net.hosts();
  assert.deepEqual([host, connections], ['api.test', 2]);
});

test('a client of HTTP/2 that repeats its order orders twice', async (t) => {
  const shop = await startSecureShop(t, 'api.test');
  const net = await network(t, { ...options, upstreamCA: shop.ca });
  await net.fault(lost);
  const socket = await connect(net, shop.port, ['h2']);
  const session = http2.connect('https://api.test', { createConnection: () => socket });
  t.after(() => session.destroy());
  assert.equal(await orderOnStream(session, 'milk'), '1 orders');
  await assert.rejects(orderOnStream(session, 'bread'), /NGHTTP2_INTERNAL_ERROR/);
  assert.equal(await orderOnStream(session, 'bread'), '3 orders');
  assert.deepEqual(shop.orders, ['2.0 milk', '2.0 bread', '2.0 bread']);
});

test('the environment leads programs through the proxy and lets them trust its authority', async (t) => {
  const shop = await startSecureShop(t, 'api.test');
  const net = await network(t, { ...options, upstreamCA: shop.ca });
  const { stdout } = await promisify(execFile)('curl', ['-sS', '-d', 'milk', `https://api.test:${shop.port}/orders`], { env: net.environment });
  assert.equal(stdout, '1 orders');
  const file = net.environment.NODE_EXTRA_CA_CERTS;
  assert.ok(fs.readFileSync(file, 'utf8').endsWith(net.ca));
  await net.close();
  assert.ok(!fs.existsSync(file));
  net.close = async () => {};
});

test('wrong options about TLS name the right ones', async (t) => {
  const refused = (given, text) => assert.rejects(network(t, given), (error) => error instanceof NetworkError && text.test(error.message));
  await refused({ forward: true, intercept: 'api.test' }, /is a list of hosts/);
  await refused({ forward: true, intercept: ['*'] }, /intercept/);
  await refused({ forward: true, intercept: true, upstreamCA: '/nowhere.pem' }, /nowhere/);
  await refused({ forward: true, upstream: 9 }, /upstream or forward/);
  await refused({ upstream: 9, map: { 'api.test': '127.0.0.1' } }, /forward: true/);
  const net = await network(t, { upstream: 9 });
  assert.throws(() => net.proxyUrl, /has an upstream/);
  assert.throws(() => net.environment, /has an upstream/);
  assert.equal(net.ca, undefined);
});
