// The stream of events and the calls of the API.
//
// The stream is read with fetch(), not EventSource, so that it can carry the token, and the page sees the reason of a
// refusal.

const base = "/slowlane/v1";
const silenceMax = 40_000;
const callTime = 15_000;
const waits = [250, 500, 1000, 2000, 4000, 5000];

let token = null;
export const setToken = (value) => { token = value; };
const authorization = () => (token ? { Authorization: `Bearer ${token}` } : {});

/** An error response of the server. */
export class CallError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function errorOf(response) {
  let text = `the server responded ${response.status}`;
  try {
    const body = await response.text();
    text = JSON.parse(body).error ?? text;
  } catch { /* The status alone. */ }
  return new CallError(response.status, text);
}

/** Calls the API; throws ``CallError`` for an error response. Returns the `data` of the response and its `warning`. */
export async function call(method, path, body) {
  const headers = { ...authorization() };
  if (method !== "GET") headers["X-Slowlane-Dashboard"] = "1";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const content = body === undefined ? undefined : JSON.stringify(body);
  const response = await fetch(base + path, { method, headers, body: content, cache: "no-store",
    signal: AbortSignal.timeout(callTime) });
  if (!response.ok) throw await errorOf(response);
  const text = await response.text();
  const warning = /^\d+ \S+ "(.*)"$/.exec(response.headers.get("Warning") ?? "")?.[1] ?? null;
  return { data: text === "" ? null : JSON.parse(text), warning };
}

/** The path of a proxy, with its name encoded. */
export const proxyPath = (name, rest = "") => `/proxies/${encodeURIComponent(name)}${rest}`;

/** Splits the text of a stream into events; a part at its end is kept for the next call. */
export class EventParser {
  constructor(receive) {
    this.receive = receive;
    this.rest = "";
    this.id = null;
    this.event = "message";
    this.data = [];
  }

  push(text) {
    this.rest += text;
    let start = 0;
    for (;;) {
      const end = this.rest.indexOf("\n", start);
      if (end < 0) break;
      this.line(this.rest.slice(start, this.rest[end - 1] === "\r" && end > start ? end - 1 : end));
      start = end + 1;
    }
    this.rest = this.rest.slice(start);
  }

  line(line) {
    if (line === "") {
      if (this.data.length) this.receive(this.event, this.data.join("\n"), this.id);
      this.event = "message";
      this.data = [];
      return;
    }
    if (line[0] === ":") return;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.data.push(value);
    else if (field === "event") this.event = value;
    else if (field === "id") this.id = value;
  }
}

/** A stream that connects again by itself, and says so. */
export class EventStream {
  /**
   * @param receive Called with the type and the object of each event.
   * @param report Called with the state: `live`, `connecting`, `token`, or `waiting` with the delay in ms and the
   *     reason.
   */
  constructor(receive, report) {
    this.receive = receive;
    this.report = report;
    this.lastID = null;
    this.attempt = 0;
    this.timer = null;
    this.controller = null;
  }

  /** Connects now, also while it waits. */
  async connect() {
    clearTimeout(this.timer);
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    this.report("connecting");
    let watchdog = null;
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => controller.abort(new Error("the server is silent")), silenceMax);
    };
    let reason = "the server ended the stream";
    try {
      alive();
      const headers = { Accept: "text/event-stream", ...authorization() };
      if (this.lastID !== null) headers["Last-Event-ID"] = this.lastID;
      const response = await fetch(`${base}/events`, { headers, cache: "no-store", signal: controller.signal });
      if (response.status === 401) {
        this.report("token");
        return;
      }
      if (!response.ok) throw await errorOf(response);
      const parser = new EventParser((type, data, id) => {
        if (id !== null) this.lastID = id;
        this.receive(type, JSON.parse(data));
      });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      this.report("live");
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        this.attempt = 0;
        alive();
        parser.push(value);
      }
    } catch (error) {
      if (this.controller !== controller) return;
      reason = error instanceof TypeError ? "the server does not respond" : error.message;
    } finally {
      clearTimeout(watchdog);
    }
    if (this.controller !== controller) return;
    const wait = waits[Math.min(this.attempt, waits.length - 1)];
    this.attempt += 1;
    this.report("waiting", wait, reason);
    this.timer = setTimeout(() => this.connect(), wait);
  }
}
