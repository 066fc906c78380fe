// The state of the page as a function of the events: no document, no clock, no socket.

const exchangesMax = 20_000;
const linksMax = 2_000;
const groupsMax = 4;
const hostsMax = 8;
const rowsMax = 8;
const spanMax = 300_000;

/** Returns the host of `127.0.0.1:80` or `[::1]:80`. */
export function hostOf(address) {
  if (!address) return "";
  const colon = address.lastIndexOf(":");
  return colon > address.lastIndexOf("]") ? address.slice(0, colon) : address;
}

const endTexts = {
  open: "open", completed: "complete", "lost-in-request": "lost in the request",
  "lost-before-commit": "lost, outcome unknown", "lost-after-commit": "lost after commit",
  switched: "switched protocol", closed: "closed", unknown: "end not seen",
};

const outcomeOf = (record) => {
  if (record.end === null || record.end === undefined) return "open";
  if (record.end.startsWith("lost") || record.end === "unknown") return "lost";
  if (record.status >= 500) return "server";
  if (record.status >= 400) return "client";
  return "ok";
};

/** What `end` means, in words. */
export const endText = (x) => endTexts[x.end ?? "open"] ?? String(x.end);

/** Returns the start of the first element at or after a time in a list that is sorted by `key`. */
export function firstAt(list, t, key = "t") {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle][key] < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

class Proxy {
  constructor(name) {
    this.name = name;
    this.listen = "";
    this.upstream = "";
    this.enabled = true;
    this.seed = null;
    this.toxics = [];
    this.intercept = [];
    this.opaque = new Set();
    this.links = [];
    this.faults = new Map();
    this.summary = null;
    this.samples = [];
    this.connections = new Map();
    this.groups = [];
  }

  get link() { return this.links.length ? this.links[this.links.length - 1] : null; }

  /** The time since which the link has its name; without one, since which anything impairs the proxy. */
  get since() {
    const name = shownLink(this.link);
    if (name === "none") return this.link?.since ?? null;
    let index = this.links.length - 1;
    while (index > 0 && shownLink(this.links[index - 1]) === name) index -= 1;
    return this.links[index].t;
  }

  /** Whether anything impairs the proxy. */
  get applies() { return this.link?.applies === true || !this.enabled; }

  /** Returns the increase of a counter of both directions over a time. */
  increase(field, ms, now) {
    if (!this.summary || this.samples.length === 0) return 0;
    const index = firstAt(this.samples, now - ms);
    const first = index > 0 ? this.samples[index - 1] : this.samples[0];
    return Math.max(0, this.samples[this.samples.length - 1][field] - first[field]);
  }
}

/** Everything that the page knows. */
export class Model {
  constructor(limit = exchangesMax) {
    this.limit = limit;
    this.server = null;
    this.recording = null;
    this.proxies = new Map();
    this.lastName = null;
    this.exchanges = [];
    this.byID = new Map();
    this.changed = [];
    this.forgotten = 0;
    this.dropped = { reader: 0, rate: 0, unknown: 0 };
    this.latest = 0;
    this.captions = [];
    this.generation = 0;
  }

  apply(type, data) {
    if (typeof data.t === "number" && data.t > this.latest) this.latest = data.t;
    const handler = handlers[type];
    if (handler) handler(this, data);
  }

  proxy(name) {
    let proxy = this.proxies.get(name);
    if (!proxy) {
      proxy = new Proxy(name);
      this.proxies.set(name, proxy);
      if (this.lastName !== null && name < this.lastName) {
        this.proxies = new Map([...this.proxies].sort(([a], [b]) => (a < b ? -1 : 1)));
      } else this.lastName = name;
    }
    return proxy;
  }

  /** The proxies to which conditions apply. */
  impaired() { return [...this.proxies.values()].filter((proxy) => proxy.applies); }

  takeChanged() { const list = this.changed; this.changed = []; return list; }

  takeCaptions() { const list = this.captions; this.captions = []; return list; }

  forgetExchanges() {
    this.exchanges = [];
    this.byID.clear();
    this.changed = [];
    this.generation += 1;
    for (const proxy of this.proxies.values()) proxy.groups = [];
  }

  upsert(proxy, id, values) {
    let x = this.byID.get(id);
    if (x) {
      Object.assign(x, values);
    } else {
      x = { id, row: 0, group: null, matches: false, ...values };
      this.byID.set(id, x);
      let at = this.exchanges.length;
      const bound = Math.max(0, at - 500);
      while (at > bound && this.exchanges[at - 1].start > x.start) at -= 1;
      if (at === this.exchanges.length) this.exchanges.push(x);
      else this.exchanges.splice(at, 0, x);
      place(proxy, x);
      if (this.exchanges.length > this.limit + 1000) {
        for (const old of this.exchanges.splice(0, 1000)) this.byID.delete(old.id);
        this.forgotten += 1000;
        this.generation += 1;
      }
    }
    const row = x.group?.rows[x.row];
    if (row && row.id === id) row.until = x.finish ?? Infinity;
    this.changed.push(x);
    return x;
  }
}

/** Gives an exchange the first free row of its client; through a forward proxy, of its destination. */
function place(proxy, x) {
  const host = x.destination ?? hostOf(x.client);
  const max = x.destination ? hostsMax : groupsMax;
  let group = proxy.groups.find((one) => one.host === host);
  if (!group) {
    group = { host, rows: [] };
    if (proxy.groups.length < max) proxy.groups.push(group);
    else {
      group = proxy.groups[proxy.groups.length - 1];
      group.host = null;
      group.rest = x.destination ? "more hosts" : "more clients";
    }
  }
  const start = Math.min(x.start, x.times.opened ?? x.start);
  let row = group.rows.findIndex((one) => one.until <= start);
  if (row < 0) {
    if (group.rows.length < rowsMax) row = group.rows.push({ until: 0, id: null }) - 1;
    else row = group.rows.reduce((best, one, index) => (one.until < group.rows[best].until ? index : best), 0);
  }
  group.rows[row] = { until: x.finish ?? Infinity, id: x.id };
  x.group = group;
  x.row = row;
}

function applyExchange(model, data) {
  const proxy = model.proxy(data.proxy);
  const times = data.times ?? {};
  const start = times.started ?? data.t;
  const finish = data.end === null || data.end === undefined ? null : times.ended ?? data.t;
  const connection = proxy.connections.get(data.connection);
  const known = model.byID.get(data.id);
  const outcome = outcomeOf(data);
  if (outcome === "lost" && known?.outcome !== "lost" && known) {
    model.captions.push(`${data.proxy}: ${data.method} ${data.target} lost`);
  }
  model.upsert(proxy, data.id, {
    kind: "exchange", proxy: data.proxy, connection: data.connection, stream: data.stream ?? null,
    client: connection?.client ?? known?.client ?? null,
    destination: connection?.destination ?? known?.destination ?? null,
    secure: connection?.intercepted ? connection.server_name ?? hostOf(connection.destination) : known?.secure ?? null,
    method: String(data.method), target: String(data.target), attempt: data.attempt ?? 1, status: data.status ?? null,
    requestBytes: data.request_bytes ?? null, responseBytes: data.response_bytes ?? null, times, start, finish,
    ms: finish === null ? null : finish - start, link: data.link ?? null, fault: data.fault ?? null,
    end: data.end ?? null, outcome,
  });
}

/** Returns whether a host is one of those whose TLS a proxy intercepts. */
const isIntercepted = (proxy, host) =>
  proxy.intercept.some((one) => one === "*" || one === host || (one.startsWith("*.") && host.endsWith(one.slice(1))));

/** Returns the hosts into whose TLS the faults of a proxy cannot see; empty without faults of requests. */
export function hiddenHosts(proxy) {
  const seesRequests = [...proxy.faults.values()].some((fault) => !String(fault.rule).startsWith("TLS "));
  return seesRequests ? [...proxy.opaque].filter((host) => !isIntercepted(proxy, host)) : [];
}

/** Shows a connection that is not HTTP, or whose TLS is intercepted, as a row of its own. */
function applyConnection(model, data) {
  const proxy = model.proxy(data.proxy);
  if (data.state === "closed") {
    // Exchanges of this connection may still be reported; the client's address is kept for them.
    if (proxy.connections.size > 2000) proxy.connections.delete(proxy.connections.keys().next().value);
  }
  proxy.connections.set(data.number, data);
  const host = data.server_name ?? (hostOf(data.destination) || "a server without a name");
  if (data.intercepted) proxy.opaque.delete(host);
  else if (data.not_http === "TLS" && !isIntercepted(proxy, host) && proxy.opaque.size < hostsMax) proxy.opaque.add(host);
  if (!data.not_http && !data.intercepted) return;
  const finish = data.closed ?? null;
  const broken = /reset|fault|unreachable|timeout/.test(data.reason ?? "");
  model.upsert(proxy, `${data.proxy}\n${data.number}\n${data.opened}`, {
    kind: "connection", proxy: data.proxy, connection: data.number, client: data.client ?? null,
    destination: data.destination ?? null, method: data.intercepted ? "TLS" : "TCP", secure: data.intercepted ? host : null,
    target: data.not_http ? String(data.not_http) : host, attempt: 1, status: null,
    requestBytes: data.bytes?.up ?? null, responseBytes: data.bytes?.down ?? null, times: { started: data.opened, ended: finish }, start: data.opened, finish,
    ms: finish === null ? null : finish - data.opened, link: proxy.link?.name ?? null,
    fault: data.reason === "fault" ? { name: "fault", point: "" } : null, end: finish === null ? null : "closed",
    reason: data.reason ?? null, outcome: finish === null ? "open" : broken ? "lost" : "ok",
  });
}

function applySummary(model, data) {
  const proxy = model.proxy(data.proxy);
  proxy.summary = data;
  const both = (pair) => (pair ? (pair.up ?? 0) + (pair.down ?? 0) : 0);
  proxy.samples.push({
    t: data.t, up: data.rate?.up ?? 0, down: data.rate?.down ?? 0, losses: both(data.losses),
    retransmissions: both(data.retransmissions),
  });
  const keep = model.proxies.size > 50 ? 300 : spanMax / 100;
  if (proxy.samples.length > keep + 200) proxy.samples.splice(0, 200);
}

function applyLink(model, data) {
  const proxy = model.proxy(data.proxy);
  proxy.links.push(data);
  if (proxy.links.length > linksMax) proxy.links.splice(0, 100);
}

function setDefinition(proxy, data) {
  proxy.listen = data.listen ?? proxy.listen;
  proxy.upstream = data.upstream ?? proxy.upstream;
  proxy.enabled = data.enabled ?? proxy.enabled;
  proxy.seed = data.seed ?? proxy.seed;
  proxy.toxics = data.toxics ?? [];
  proxy.intercept = data.intercept ?? [];
}

const handlers = {
  hello(model, data) {
    const restarted = model.server === null || model.server.started !== data.started;
    if (restarted) {
      model.proxies = new Map();
      model.lastName = null;
      model.forgetExchanges();
      model.forgotten = 0;
    }
    model.server = { version: data.version, schema: data.schema, started: data.started, dashboard: data.dashboard };
    model.recording = data.recording ?? null;
    const open = new Set();
    const present = new Set();
    for (const snapshot of data.proxies ?? []) {
      present.add(snapshot.proxy);
      const proxy = model.proxy(snapshot.proxy);
      setDefinition(proxy, snapshot.definition ?? {});
      if (snapshot.link && (proxy.link === null || changes(proxy.link, snapshot.link))) applyLink(model, snapshot.link);
      proxy.faults = new Map((snapshot.faults ?? []).map((fault) => [fault.name, fault]));
      if (snapshot.summary) applySummary(model, snapshot.summary);
      proxy.connections = new Map();
      for (const connection of snapshot.connections ?? []) applyConnection(model, connection);
      for (const exchange of snapshot.exchanges ?? []) {
        open.add(exchange.id);
        applyExchange(model, exchange);
      }
    }
    for (const name of [...model.proxies.keys()]) if (!present.has(name)) model.proxies.delete(name);
    // Exchanges whose end was not seen while events were missing.
    for (const x of model.exchanges) {
      if (x.finish === null && x.kind === "exchange" && !open.has(x.id)) {
        Object.assign(x, { finish: data.t, end: "unknown", outcome: "lost" });
        model.changed.push(x);
      }
    }
  },
  summary: applySummary,
  connection: applyConnection,
  exchange: applyExchange,
  link: applyLink,
  fault(model, data) {
    const proxy = model.proxy(data.proxy);
    if (data.change === "removed") proxy.faults.delete(data.name);
    else proxy.faults.set(data.name, { name: data.name, rule: data.rule, fired: data.fired ?? 0 });
    if (data.change === "fired") model.captions.push(`${data.proxy}: fault ${data.rule} has fired`);
  },
  proxy(model, data) {
    if (data.change === "deleted") {
      model.proxies.delete(data.proxy);
      return;
    }
    setDefinition(model.proxy(data.proxy), data);
  },
  recording(model, data) { model.recording = data; },
  dropped(model, data) {
    if (data.reason === "rate") model.dropped.rate += data.count ?? 0;
    else if (data.reason === "reader") {
      if (data.count === null || data.count === undefined) model.dropped.unknown += 1;
      else model.dropped.reader += data.count;
    }
  },
};

const changes = (a, b) => a.name !== b.name || a.applies !== b.applies || a.reset_at !== b.reset_at
  || a.outage?.up !== b.outage?.up || a.outage?.down !== b.outage?.down || a.timeline !== b.timeline;

/** Returns the name that a link has on the page: an outage replaces the link's. */
export function shownLink(link) {
  if (!link) return "none";
  if (link.outage?.up && link.outage?.down) return "outage";
  if (link.outage?.up) return "uplink-loss";
  if (link.outage?.down) return "downlink-loss";
  return link.name ?? "none";
}

/** Returns how bad a link is: the key of its colour. */
export function severity(name, link) {
  if (name === "none") return "off";
  if (["100-loss", "outage", "uplink-loss", "downlink-loss"].includes(name)) return "loss";
  if (["offline", "dns", "portal"].includes(name)) return "offline";
  const rate = Math.min(link?.down?.rate_bps ?? Infinity, link?.up?.rate_bps ?? Infinity);
  const delay = (link?.down?.delay_ms ?? 0) + (link?.up?.delay_ms ?? 0);
  if (rate <= 300_000 || delay >= 600) return "edge";
  if (rate <= 2_000_000 || delay >= 180) return "g3";
  if (delay >= 40) return "lte";
  return "wifi";
}
