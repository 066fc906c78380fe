'use strict';
// Fixtures of Playwright Test: `const test = base.extend(networkFixtures)`.

const { Fault, Network } = require('./lib/network');
const { NetworkError, findProgram } = require('./lib/program');
const { TestNetworks, quoted, relative } = require('./lib/test-networks');

/** Playwright reads the names of used fixtures from the text of these functions, so that their first argument is a pattern. */
const networkFixtures = {
  networkOptions: [{}, { option: true }],
  makeNetwork: async ({}, use, testInfo) => {
    const name = testInfo.titlePath.join(' ');
    const place = `${relative(testInfo.file)}:${testInfo.line}`;
    const project = testInfo.project.name ? ` --project=${quoted(testInfo.project.name)}` : '';
    const networks = new TestNetworks(name, (seed) => `SLOWLANE_SEED=${seed} npx playwright test ${quoted(place)}${project}`);
    await use((options) => networks.create(options));
    const { error, section } = await networks.end(testInfo.status !== testInfo.expectedStatus);
    if (section && !error) {
      await testInfo.attach('slowlane network', { body: section, contentType: 'text/plain' });
      console.error(section);
    }
    if (error) throw error;
  },
  network: async ({ makeNetwork, networkOptions }, use) => {
    await use(await makeNetwork(networkOptions));
  },
};

exports.networkFixtures = networkFixtures;
exports.findProgram = findProgram;
exports.Fault = Fault;
exports.Network = Network;
exports.NetworkError = NetworkError;
