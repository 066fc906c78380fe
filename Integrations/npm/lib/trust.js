'use strict';
// The certificates that the processes of a test trust while the TLS of their connections is intercepted.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const tls = require('node:tls');

/** The variables whose file replaces the certificates of a program. */
const REPLACING = [
  'SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'AWS_CA_BUNDLE', 'GIT_SSL_CAINFO', 'CARGO_HTTP_CAINFO', 'PERL_LWP_SSL_CA_FILE',
  'PIP_CERT', 'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
];
/** The variable whose file adds certificates to those of a program. */
const ADDING = 'NODE_EXTRA_CA_CERTS';

/** Returns the certificates of a file in PEM form; an empty text if there is none. */
function certificates(file) {
  try {
    return file ? `${fs.readFileSync(file, 'utf8')}\n` : '';
  } catch {
    return '';
  }
}

/** A folder with the certificates of Node.js, or of the variables that are set, and of an authority. */
class Trust {
  constructor(authority) {
    this._authority = authority;
    this._folder = fs.mkdtempSync(path.join(os.tmpdir(), 'slowlane-trust-'));
    const bundle = this._write('bundle.pem', `${tls.rootCertificates.join('\n')}\n`);
    /** The variables by which programs find the certificates. */
    this.variables = { [ADDING]: this._write('authority.pem', certificates(process.env[ADDING])) };
    for (const name of REPLACING) {
      const given = certificates(process.env[name]);
      this.variables[name] = given ? this._write(`${name}.pem`, given) : bundle;
    }
  }

  _write(name, others) {
    const file = path.join(this._folder, name);
    fs.writeFileSync(file, others + this._authority);
    return file;
  }

  remove() { fs.rmSync(this._folder, { recursive: true, force: true }); }
}

module.exports = { Trust };
