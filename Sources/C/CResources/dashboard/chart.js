// The time axis: for each proxy the link, the requests of its clients, and the bytes, on one canvas.

import { clock, duration, linkName, rate, shortened, visible } from "./format.js";
import { firstAt, severity, shownLink } from "./model.js";

const linkHeight = 20;
const rowHeight = 18;
const bytesHeight = 32;
const axisHeight = 22;
const gap = 10;
const rowsMin = 3;
const settleTime = 10_000;
const letter = 6.1;
const spans = [5_000, 15_000, 30_000, 60_000, 120_000, 300_000];

const colorNames = [
  "text", "muted", "border", "surface", "accent", "brush", "up", "down",
  "send", "wait", "receive", "client", "server", "lost", "lost-part",
  "band-off", "band-wifi", "band-lte", "band-g3", "band-edge", "band-loss", "band-offline", "band-text",
];
const axisSteps = [1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000];
const axisRoom = 84;

const hint = (x) =>
  `${visible(x.method)} ${shortened(visible(x.target), 120)}\n${x.status ?? x.end ?? "open"}, ${duration(x.ms)}`;

/** A canvas that shows a window of the time of some proxies. */
export class Chart {
  constructor(model, host, listener) {
    this.model = model;
    this.host = host;
    this.listener = listener;
    this.canvas = host.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    this.span = 60_000;
    this.end = null;
    this.brush = null;
    this.cursor = null;
    this.selected = null;
    this.drag = null;
    this.layout = [];
    this.heights = new Map();
    this.colors = {};
    this.width = 0;
    this.readColors();
    new ResizeObserver(() => this.resize()).observe(host);
    this.resize();
    host.addEventListener("pointerdown", (event) => this.pointerDown(event));
    host.addEventListener("pointermove", (event) => this.pointerMove(event));
    host.addEventListener("pointerup", (event) => this.pointerUp(event));
    host.addEventListener("pointercancel", () => { this.drag = null; });
    host.addEventListener("keydown", (event) => this.key(event));
  }

  readColors() {
    const style = getComputedStyle(document.documentElement);
    for (const name of colorNames) {
      this.colors[name] = style.getPropertyValue(`--${name}`).trim();
    }
    this.font = `11px ${style.getPropertyValue("--sans").trim()}`;
  }

  resize() {
    const width = Math.max(200, Math.floor(this.host.clientWidth));
    if (width === this.width) return;
    this.width = width;
    this.gutter = width < 600 ? 64 : 104;
    this.stale = true;
  }

  get paused() { return this.end !== null; }

  /** Pauses at a time, or continues with `null`. */
  setEnd(end) {
    const was = this.paused;
    this.end = end;
    if (was !== this.paused) this.listener.paused(this.paused);
  }

  setSpan(span) {
    this.span = Math.min(spans[spans.length - 1], Math.max(spans[0], span));
    this.listener.span(this.span);
  }

  setBrush(from, to) {
    this.brush = from === null ? null : { from: Math.min(from, to), to: Math.max(from, to) };
    this.listener.brush(this.brush);
  }

  x(t) { return this.gutter + ((t - this.right + this.span) / this.span) * (this.width - this.gutter); }

  t(x) { return this.right - this.span + ((x - this.gutter) / (this.width - this.gutter)) * this.span; }

  // The rows of a client: those in use now, and those that were in use some seconds ago, so that nothing jumps.
  rowsOf(proxy, group, from, now, least) {
    let rows = least;
    for (let index = this.first; index < this.model.exchanges.length; index += 1) {
      const x = this.model.exchanges[index];
      if (x.group === group && x.row >= rows && (x.finish === null || x.finish >= from)) rows = x.row + 1;
    }
    const key = `${proxy.name}\n${group.host}`;
    const kept = this.heights.get(key);
    if (!kept || rows >= kept.rows) this.heights.set(key, { rows, at: now });
    else if (now - kept.at > settleTime) this.heights.set(key, { rows, at: now });
    if (this.heights.size > 500) this.heights.clear();
    return this.heights.get(key)?.rows ?? rows;
  }

  arrange(proxies, from, now) {
    const lanes = [];
    let y = axisHeight;
    for (const proxy of proxies) {
      const lane = { proxy, link: y, groups: [], bytes: 0 };
      y += linkHeight + 4;
      const groups = proxy.groups.length ? proxy.groups : [{ host: "", rows: [] }];
      for (const group of groups) {
        const rows = this.rowsOf(proxy, group, from, now, groups.length > 1 ? 1 : rowsMin);
        lane.groups.push({ group, y, rows });
        y += rows * rowHeight + 4;
      }
      lane.bytes = y;
      y += bytesHeight + gap;
      lanes.push(lane);
    }
    this.layout = lanes;
    return Math.max(120, y);
  }

  /** Draws the window that ends at `now`, or where it is paused. */
  draw(proxies, now) {
    this.right = this.end ?? this.drag?.right ?? now;
    const from = this.right - this.span;
    this.first = this.firstExchange(from);
    const height = this.arrange(proxies, from, now);
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    if (this.stale || height !== this.height || ratio !== this.ratio) {
      this.height = height;
      this.ratio = ratio;
      this.stale = false;
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const c = this.context;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.width, height);
    c.font = this.font;
    c.textBaseline = "middle";
    this.drawAxis(c, from);
    for (const lane of this.layout) {
      this.drawLink(c, lane, from, now);
      this.drawBytes(c, lane, from, now);
    }
    this.drawExchanges(c, from, now);
    c.fillStyle = this.colors.surface;
    c.fillRect(0, 0, this.gutter - 1, height);
    for (const lane of this.layout) this.drawLabels(c, lane);
    this.drawMarks(c, height);
  }

  // Exchanges are sorted by start; one that began long before the window can still be in it.
  firstExchange(from) {
    const list = this.model.exchanges;
    let index = firstAt(list, from, "start");
    const bound = Math.max(0, index - 3000);
    let first = index;
    while (index > bound) {
      index -= 1;
      if (list[index].finish === null || list[index].finish >= from) first = index;
    }
    return first;
  }

  drawAxis(c, from) {
    const pixels = (this.width - this.gutter) / this.span;
    const step = axisSteps.find((one) => one * pixels >= axisRoom) ?? 60_000;
    c.fillStyle = this.colors.muted;
    c.strokeStyle = this.colors.border;
    c.lineWidth = 1;
    c.beginPath();
    for (let t = Math.ceil(from / step) * step; t <= this.right; t += step) {
      const x = Math.round(this.x(t)) + 0.5;
      c.moveTo(x, axisHeight - 4);
      c.lineTo(x, this.height);
      if (x + 50 < this.width) c.fillText(clock(t, 0), x + 4, axisHeight / 2 - 1);
    }
    c.stroke();
  }

  drawLink(c, lane, from, now) {
    const links = lane.proxy.links;
    let index = Math.max(0, firstAt(links, from) - 1);
    for (; index < links.length; index += 1) {
      const link = links[index];
      if (link.t > this.right) break;
      const next = index + 1 < links.length ? links[index + 1].t : Math.max(now, this.right);
      const left = Math.max(this.gutter, this.x(link.t));
      const right = Math.min(this.width, this.x(Math.min(next, this.paused ? now : next)));
      if (right <= left) continue;
      const name = shownLink(link);
      const key = severity(name, link);
      c.fillStyle = this.colors[`band-${key}`];
      c.fillRect(left, lane.link, right - left, linkHeight);
      // The conditions continue, faintly, behind the requests.
      c.globalAlpha = 0.16;
      const top = lane.link + linkHeight;
      if (key !== "off") c.fillRect(left, top, right - left, lane.bytes + bytesHeight - top);
      c.globalAlpha = 1;
      if (key === "loss" || key === "offline") this.hatch(c, left, lane.link, right - left, linkHeight);
      const room = Math.floor((right - left - 10) / letter);
      if (room >= 3) {
        c.fillStyle = this.colors["band-text"];
        const text = shortened(name === "outage" ? "Outage" : linkName(name), room);
        c.fillText(text, left + 6, lane.link + linkHeight / 2 + 0.5);
      }
    }
  }

  hatch(c, x, y, width, height) {
    c.save();
    c.beginPath();
    c.rect(x, y, width, height);
    c.clip();
    c.strokeStyle = this.colors["band-text"];
    c.globalAlpha = 0.22;
    c.beginPath();
    for (let at = x - height; at < x + width; at += 7) {
      c.moveTo(at, y + height);
      c.lineTo(at + height, y);
    }
    c.stroke();
    c.restore();
  }

  drawBytes(c, lane, from, now) {
    const samples = lane.proxy.samples;
    const index = Math.max(0, firstAt(samples, from) - 1);
    let top = 1000;
    for (let at = index; at < samples.length; at += 1) top = Math.max(top, samples[at].up, samples[at].down);
    const base = lane.bytes + bytesHeight;
    for (const key of ["down", "up"]) {
      c.beginPath();
      let y = base;
      c.moveTo(this.gutter, base);
      for (let at = index; at < samples.length; at += 1) {
        const sample = samples[at];
        if (sample.t > this.right) break;
        const x = Math.max(this.gutter, this.x(sample.t));
        c.lineTo(x, y);
        y = base - (sample[key] / top) * (bytesHeight - 2);
        c.lineTo(x, y);
      }
      const end = Math.min(this.width, this.x(now));
      c.lineTo(end, y);
      if (key === "down") {
        c.lineTo(end, base);
        c.globalAlpha = 0.35;
        c.fillStyle = this.colors.down;
        c.fill();
        c.globalAlpha = 1;
      } else {
        c.strokeStyle = this.colors.up;
        c.lineWidth = 1.2;
        c.stroke();
      }
    }
    lane.top = top;
  }

  drawExchanges(c, from, now) {
    const list = this.model.exchanges;
    const places = new Map();
    for (const lane of this.layout) for (const one of lane.groups) places.set(one.group, one);
    const limits = new Map();
    // From the newest to the oldest, so that a text knows the room that is left before the next bar of its row.
    for (let index = list.length - 1; index >= this.first; index -= 1) {
      const x = list[index];
      if (x.start > this.right) continue;
      const finish = x.finish ?? Math.max(now, x.start);
      if (finish < from) continue;
      const place = places.get(x.group);
      if (!place || x.row >= place.rows) continue;
      let rows = limits.get(place);
      if (!rows) limits.set(place, rows = new Array(place.rows).fill(this.width));
      const begin = x.times.opened ?? x.start;
      const left = this.x(begin);
      const right = Math.max(left + 2, this.x(finish));
      // A bar that an already drawn one covers, to the pixel, is left out: this bounds the work of a frame.
      if (left >= rows[x.row] - 0.5) continue;
      const y = place.y + x.row * rowHeight + 2;
      this.drawBar(c, x, y, left, Math.min(right, this.width), now, rows[x.row]);
      rows[x.row] = left;
    }
  }

  drawBar(c, x, y, left, right, now, limit) {
    const height = rowHeight - 4;
    const colors = this.colors;
    const at = (t) => Math.min(right, Math.max(left, this.x(t)));
    c.globalAlpha = x.matches ? 1 : 0.22;
    const times = x.times;
    const clipped = Math.max(this.gutter, left);
    if (x.kind === "connection") {
      c.fillStyle = colors["band-off"];
      c.fillRect(clipped, y, right - clipped, height);
      c.strokeStyle = x.outcome === "lost" ? colors.lost : colors.receive;
      c.lineWidth = 1.5;
      c.strokeRect(clipped + 0.75, y + 0.75, right - clipped - 1.5, height - 1.5);
    } else if (right - left < 4) {
      c.fillStyle = colors[x.outcome === "ok" || x.outcome === "open" ? "send" : x.outcome];
      c.fillRect(clipped, y, Math.max(1.5, right - clipped), height);
    } else {
      const start = at(x.start);
      const sent = at(times.request_delivered ?? (times.response_started ?? x.finish ?? now));
      const answered = at(times.response_started ?? x.finish ?? now);
      if (start > clipped) {
        c.strokeStyle = colors.send;
        c.lineWidth = 1;
        c.strokeRect(clipped + 0.5, y + 3.5, start - clipped - 1, height - 7);
      }
      const fill = (color, a, b) => {
        const one = Math.max(this.gutter, a);
        if (b <= one) return;
        c.fillStyle = color;
        c.fillRect(one, y, b - one, height);
      };
      fill(colors.send, start, sent);
      fill(colors.wait, sent, answered);
      if (x.outcome === "lost") {
        const committed = at(times.response_read ?? times.response_started ?? times.request_delivered ?? x.start);
        fill(colors.receive, answered, committed);
        fill(colors["lost-part"], Math.max(committed, times.request_delivered ? left : start), right);
      } else fill(colors.receive, answered, right);
      if (x.outcome === "client" || x.outcome === "server") {
        c.fillStyle = colors[x.outcome];
        c.fillRect(Math.max(clipped, right - 4), y, 4, height);
      }
      if (x.outcome === "lost") {
        c.strokeStyle = colors.lost;
        c.lineWidth = 1.5;
        c.strokeRect(clipped + 0.75, y + 0.75, right - clipped - 1.5, height - 1.5);
      }
      if (x.fault) {
        c.fillStyle = colors.lost;
        c.beginPath();
        c.arc(Math.max(clipped + 5, right - 9), y + height / 2, 2.5, 0, 7);
        c.fill();
      }
    }
    if (this.selected === x.id) {
      c.strokeStyle = colors.text;
      c.lineWidth = 2;
      c.strokeRect(clipped - 1, y - 1, right - clipped + 2, height + 2);
    }
    this.drawText(c, x, y, clipped, right, limit, height);
    c.globalAlpha = 1;
  }

  drawText(c, x, y, left, right, limit, height) {
    const text = () => {
      const end = x.outcome === "lost" ? "✕ lost" : x.status ?? "";
      return `${visible(x.method)} ${visible(x.target)}${end === "" ? "" : ` ${end}`}`;
    };
    const inside = Math.floor((right - left - 10) / letter);
    const outside = Math.floor((Math.min(limit, this.width) - right - 10) / letter);
    if (inside < 7 && outside < 7) return;
    const full = text();
    const within = inside >= full.length || inside >= outside;
    const room = within ? inside : outside;
    c.fillStyle = within ? this.colors["band-text"] : this.colors.muted;
    c.fillText(shortened(full, room), (within ? left : right) + 5, y + height / 2 + 0.5);
  }

  drawLabels(c, lane) {
    const room = Math.floor((this.gutter - 14) / letter);
    c.fillStyle = this.colors.text;
    c.fillText(shortened(visible(lane.proxy.name), room), 2, lane.link + linkHeight / 2 + 0.5);
    c.fillStyle = this.colors.muted;
    for (const { group, y } of lane.groups) {
      const name = group.host === null ? group.rest : visible(group.host);
      c.fillText(shortened(name, room), 2, y + rowHeight / 2);
    }
    c.fillText(shortened(`${room > 12 ? "max " : ""}${rate(lane.top ?? 0)}`, room), 2, lane.bytes + bytesHeight - 7);
  }

  drawMarks(c, height) {
    if (this.brush) {
      const left = Math.max(this.gutter, this.x(this.brush.from));
      const right = Math.min(this.width, this.x(this.brush.to));
      if (right > left) {
        c.fillStyle = this.colors.brush;
        c.globalAlpha = 0.18;
        c.fillRect(left, 0, right - left, height);
        c.globalAlpha = 1;
        c.fillRect(left - 1, 0, 2, height);
        c.fillRect(right - 1, 0, 2, height);
      }
    }
    if (this.cursor !== null) {
      const x = this.x(this.cursor);
      if (x >= this.gutter && x <= this.width) {
        c.fillStyle = this.colors.accent;
        c.fillRect(Math.round(x), 0, 1, height);
        const label = clock(this.cursor, 2);
        const width = label.length * 6.4;
        c.fillText(label, Math.min(x + 4, this.width - width), height - 8);
      }
    }
  }

  /** Returns the exchange at a point; the newest of several. */
  hit(x, y) {
    const t = this.t(x);
    const slack = (3 / (this.width - this.gutter)) * this.span;
    for (let index = this.model.exchanges.length - 1; index >= (this.first ?? 0); index -= 1) {
      const one = this.model.exchanges[index];
      if ((one.times.opened ?? one.start) - slack > t || (one.finish ?? Infinity) + slack < t) continue;
      for (const lane of this.layout) {
        const place = lane.groups.find((candidate) => candidate.group === one.group);
        if (place && Math.floor((y - place.y) / rowHeight) === one.row) return one;
      }
    }
    return null;
  }

  position(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  pointerDown(event) {
    if (event.button !== 0) return;
    const { x, y } = this.position(event);
    if (x < this.gutter) return;
    // The window stands still while the button is down.
    this.drag = { x, y, t: this.t(x), right: this.right, moved: false };
    this.host.setPointerCapture(event.pointerId);
  }

  pointerMove(event) {
    const { x, y } = this.position(event);
    if (!this.drag) {
      const one = x >= this.gutter ? this.hit(x, y) : null;
      this.host.title = one ? hint(one) : "";
      return;
    }
    if (!this.drag.moved && Math.abs(x - this.drag.x) < 5) return;
    if (!this.drag.moved && !this.paused) this.setEnd(this.right);
    this.drag.moved = true;
    this.setBrush(this.drag.t, this.t(Math.min(this.width, Math.max(this.gutter, x))));
  }

  pointerUp(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag || drag.moved) return;
    const { x, y } = this.position(event);
    const one = this.hit(x, y);
    if (one) this.listener.open(one);
    else if (this.brush) this.setBrush(null);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const from = this.right - this.span;
    const step = this.span / 60;
    const hold = () => { if (!this.paused) this.setEnd(this.right); };
    const move = (to) => {
      hold();
      const old = this.cursor ?? this.right;
      const t = Math.min(this.right, Math.max(from, to));
      if (event.shiftKey) {
        const anchor = this.brush ? (old === this.brush.from ? this.brush.to : this.brush.from) : old;
        this.setBrush(anchor, t);
      }
      this.cursor = t;
      this.listener.cursor(t);
    };
    const cursor = this.cursor ?? this.right;
    switch (event.key) {
      case "ArrowLeft": move(cursor - step); break;
      case "ArrowRight": move(cursor + step); break;
      case "Home": move(from); break;
      case "End": move(this.right); break;
      case "PageUp": hold(); this.setEnd(this.end - this.span / 2); break;
      case "PageDown": {
        hold();
        this.setEnd(this.end + this.span / 2 >= this.model.latest ? null : this.end + this.span / 2);
        break;
      }
      case "+": case "-": {
        const index = spans.findIndex((one) => one >= this.span);
        this.setSpan(spans[Math.min(spans.length - 1, Math.max(0, index + (event.key === "-" ? 1 : -1)))]);
        break;
      }
      case "Enter": {
        const one = this.nearest(cursor);
        if (one) this.listener.open(one);
        break;
      }
      case "Escape": this.setBrush(null); this.cursor = null; break;
      default: return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Returns the newest exchange that is open at a time, else the one that ended last before it. */
  nearest(t) {
    const shown = new Set(this.layout.map((lane) => lane.proxy.name));
    let best = null;
    for (let index = this.model.exchanges.length - 1; index >= 0; index -= 1) {
      const one = this.model.exchanges[index];
      if (!shown.has(one.proxy) || one.start > t) continue;
      if ((one.finish ?? Infinity) >= t) return one;
      if (!best || one.finish > best.finish) best = one;
      if (best && index < this.model.exchanges.length - 3000) break;
    }
    return best;
  }
}

