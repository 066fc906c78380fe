'use strict';
// The server under test: a shop that counts its orders.

const http = require('node:http');

/** Resolves to a server that listens; `orders` is the number of orders that it has stored, `upstream` its address. */
module.exports = async function startShop(t) {
  const shop = { orders: 0 };
  const server = http.createServer((request, response) => {
    request.resume().on('end', () => {
      if (request.method === 'POST') shop.orders += 1;
      response.end(`${shop.orders} orders`);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  shop.upstream = `127.0.0.1:${server.address().port}`;
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return shop;
};
