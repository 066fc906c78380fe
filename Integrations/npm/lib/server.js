'use strict';
// The process `slowlane server` of a process that runs tests, and calls of its HTTP API.

const http = require('node:http');
const { spawn } = require('node:child_process');
const { NetworkError, findProgram } = require('./program');

const START_MILLISECONDS = 30_000;
const CALL_MILLISECONDS = 30_000;
/** The longest first line of output, and the part of the error output that an error shows. */
const TEXT_MAX = 2000;
/** The longest response of the API. */
const RESPONSE_BYTES_MAX = 64 << 20;

/** A running `slowlane server` on a port of its own. It does not keep the process of the tests alive, and ends with it. */
class Server {
  constructor(program) {
    this.program = program;
    this.errors = '';
    this.isRunning = true;
    // A session of its own: Ctrl-C in the terminal ends the tests first, which still need the server. The server watches its parent, and
    // ends also after SIGKILL.
    this.process = spawn(program, ['server', '--host', '127.0.0.1', '--port', '0', '--exit-with-parent'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      env: { ...process.env, LOG_LEVEL: 'warning' },
    });
    this.agent = new http.Agent({ keepAlive: false });
    this.process.stderr.setEncoding('utf8').on('data', (text) => {
      this.errors = (this.errors + text).slice(-TEXT_MAX);
    });
    this.process.on('close', (status, signal) => {
      this.isRunning = false;
      this.ending = [signal ? `signal ${signal}` : `exit status ${status}`, this.errors.trim()].filter(Boolean).join('; ');
    });
    this.process.unref();
    for (const stream of [this.process.stdout, this.process.stderr]) stream.unref();
    this.stop = () => this.process.kill('SIGKILL');
    process.once('exit', this.stop);
  }

  /** Starts the program and returns its server when it listens. */
  static async start(configured) {
    const program = findProgram(configured);
    const server = new Server(program);
    const line = await server.firstLine();
    const found = /listening on (http:\/\/\S+)/.exec(line);
    if (!found) {
      server.stop();
      throw new NetworkError(`'${program} server' did not start: ${server.ending || `its first line was '${line}'`}`);
    }
    server.url = new URL(found[1]);
    return server;
  }

  /** Resolves to the first line of output, or to the part of it that has come when the program ends or is silent for too long. */
  firstLine() {
    const { stdout } = this.process;
    return new Promise((resolve) => {
      let text = '';
      // The timer keeps the process alive, because the output does not.
      const timer = setTimeout(() => resolve(text), START_MILLISECONDS);
      const end = () => {
        clearTimeout(timer);
        resolve(text.split('\n', 1)[0].trim());
      };
      stdout.setEncoding('utf8').on('data', (more) => {
        if (text.length < TEXT_MAX) text += more;
        if (text.includes('\n')) end();
      });
      this.process.on('error', (error) => {
        this.isRunning = false;
        this.ending = error.message;
        end();
      });
      this.process.on('close', end);
    });
  }

  /**
   * Resolves to the response to a request, decoded from JSON. Rejects with a NetworkError that has the server's text. Warnings of the
   * response are errors, or are appended to the array `warnings`.
   */
  async call(method, path, body, warnings) {
    const { status, headers, text } = await this.request(method, path, body).catch((error) => {
      const ended = this.isRunning ? '' : `; the server has ended: ${this.ending || 'no error output'}`;
      throw new NetworkError(`${method} ${path} at ${this.url.origin} failed: ${error.message}${ended}`);
    });
    if (status >= 400) {
      let reason = 'no error text';
      try {
        reason = JSON.parse(text).error ?? reason;
      } catch {
        // The response is not from Slowlane.
      }
      throw new NetworkError(`${reason} (${method} ${path}: status ${status})`, status);
    }
    const found = (headers.warning ? [headers.warning].flat() : []).map((line) => line.replace(/^\d+ \S+ "(.*)"$/, '$1'));
    if (warnings) warnings.push(...found);
    // A misspelt field has no effect, so the test would not test what it states.
    else if (found.length) throw new NetworkError(found.join('; '));
    return text ? JSON.parse(text) : null;
  }

  request(method, path, body) {
    const data = body === undefined ? undefined : JSON.stringify(body);
    const headers = { 'User-Agent': 'slowlane-npm' };
    if (data !== undefined) Object.assign(headers, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(data) });
    return new Promise((resolve, reject) => {
      const options = { agent: this.agent, host: this.url.hostname, port: this.url.port, method, path, headers, timeout: CALL_MILLISECONDS };
      const request = http.request(options, (response) => {
        const parts = [];
        let bytes = 0;
        response.on('data', (part) => {
          parts.push(part);
          bytes += part.length;
          if (bytes > RESPONSE_BYTES_MAX) request.destroy(new Error(`the response is longer than ${RESPONSE_BYTES_MAX} bytes`));
        });
        response.on('error', reject);
        response.on('end', () => resolve({
          status: response.statusCode, headers: response.headers, text: Buffer.concat(parts).toString('utf8'),
        }));
      });
      request.on('timeout', () => request.destroy(new Error(`no response for ${CALL_MILLISECONDS / 1000} s`)));
      request.on('error', reject);
      request.end(data);
    });
  }
}

/** The servers of this process, one for each program. */
const servers = new Map();

/** Resolves to the running server of a program; starts one if there is none or if it has ended. */
async function runningServer(configured) {
  const key = configured || '';
  const earlier = servers.get(key);
  if (earlier) {
    const server = await earlier.catch(() => undefined);
    if (server && server.isRunning) return server;
    // Concurrent callers share one start.
    if (servers.get(key) !== earlier) return runningServer(configured);
  }
  const start = Server.start(configured);
  servers.set(key, start);
  return start;
}

module.exports = { runningServer };
