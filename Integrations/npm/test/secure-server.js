'use strict';
// The server under test over HTTPS, with HTTP/1.1 and HTTP/2, and its own certificate authority.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const http2 = require('node:http2');
const os = require('node:os');
const path = require('node:path');

/** Resolves to a shop that listens: `orders` has the orders that it has stored, `ca` the file of its authority. */
module.exports = async function startSecureShop(t, host) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'shop-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const file = (name) => path.join(folder, name);
  const make = (...options) => execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', ...options], { stdio: 'pipe' });
  make('-keyout', file('ca.key'), '-out', file('ca.pem'), '-subj', '/CN=shop authority');
  make('-keyout', file('host.key'), '-out', file('host.pem'), '-subj', `/CN=${host}`, '-CA', file('ca.pem'), '-CAkey', file('ca.key'),
    '-addext', `subjectAltName=DNS:${host}`, '-addext', 'basicConstraints=critical,CA:FALSE');
  const shop = { orders: [], ca: file('ca.pem') };
  const options = { cert: fs.readFileSync(file('host.pem')), key: fs.readFileSync(file('host.key')), allowHTTP1: true };
  const server = http2.createSecureServer(options, (request, response) => {
    let text = '';
    request.on('data', (part) => { text += part; }).on('end', () => {
      shop.orders.push(`${request.httpVersion} ${text}`);
      response.writeHead(201);
      response.end(`${shop.orders.length} orders`);
    });
  });
  const sockets = new Set();
  server.on('connection', (socket) => sockets.add(socket));
  for (const event of ['sessionError', 'tlsClientError']) server.on(event, () => {});
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  shop.port = server.address().port;
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return shop;
};
