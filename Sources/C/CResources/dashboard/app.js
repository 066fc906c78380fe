// The page: joins the stream of events, the parts of the page, and the calls of the API.

import { Chart } from "./chart.js";
import { Details } from "./details.js";
import { parseFilter } from "./filter.js";
import { button, clock, count, duration, element, linkName, setText, shortened, visible } from "./format.js";
import { helpContent } from "./help.js";
import { Model } from "./model.js";
import { bannerText, Cards, conditionsOf, positions } from "./proxies.js";
import { CallError, call, EventStream, proxyPath, setToken } from "./stream.js";
import { Table } from "./table.js";

const byID = (id) => document.getElementById(id);
const frameTime = matchMedia("(prefers-reduced-motion: reduce)").matches ? 500 : 66;
const listTime = 200;
const captionTime = 1500;

const settings = {
  get(key) { try { return localStorage.getItem(`slowlane-${key}`); } catch { return null; } },
  set(key, value) {
    try { localStorage.setItem(`slowlane-${key}`, value); } catch { /* Private windows have no storage. */ }
  },
};

class Page {
  constructor() {
    this.model = new Model();
    this.current = null;
    this.arrival = { event: 0, local: 0 };
    this.connected = false;
    this.readOnly = false;
    this.lostAt = null;
    this.lastList = 0;
    this.pending = [];
    this.lists = null;
    this.commands = Promise.resolve();
    this.keys = settings.get("keys") !== "off";
    this.queue = [];
    this.captionAt = 0;
    this.cards = new Cards(this);
    this.details = new Details(this);
    this.table = new Table(this.model, (x) => this.openExchange(x));
    this.chart = new Chart(this.model, byID("chart"), {
      paused: (on) => this.showPaused(on),
      span: (span) => this.showSpan(span),
      brush: (brush) => this.showBrush(brush),
      cursor: (t) => this.say(clock(t, 2)),
      open: (x) => this.openExchange(x),
    });
    this.setTheme(settings.get("theme") ?? "auto");
    this.listen();
    this.stream = new EventStream(
      (type, data) => this.receive(type, data), (...state) => this.showConnection(...state));
    const fragment = new URLSearchParams(location.hash.slice(1));
    if (fragment.has("token")) {
      setToken(fragment.get("token"));
      history.replaceState(null, "", location.pathname);
    }
    this.stream.connect();
    requestAnimationFrame((time) => this.frame(time));
    setInterval(() => { if (document.hidden) this.drawLists(); }, 1000);
  }

  // Events

  receive(type, data) {
    this.model.apply(type, data);
    if (this.model.latest > this.arrival.event) this.arrival = { event: this.model.latest, local: performance.now() };
    if (type === "hello") this.welcome(data);
    else if (type === "link") this.sayLink(data);
    else if (type === "recording") this.showRecording();
  }

  welcome(data) {
    const restarted = this.started !== undefined && this.started !== data.started;
    this.started = data.started;
    this.readOnly = data.dashboard === "view";
    byID("read-only").hidden = !this.readOnly;
    this.applyMode(document);
    setText(byID("version"), `slowlane ${visible(data.version)}`);
    this.showRecording();
    this.drawLists();
    if (restarted) {
      this.say("The server has restarted");
      this.details.close();
      this.chart.setEnd(null);
      this.chart.setBrush(null);
    }
  }

  /** The time of the events, continued while the stream is live. */
  now() {
    if (this.arrival.event === 0) return Date.now();
    if (!this.connected) return this.arrival.event;
    return this.arrival.event + Math.min(performance.now() - this.arrival.local, 20_000);
  }

  showConnection(state, wait, reason) {
    const pill = byID("connection");
    const lost = byID("lost");
    this.connected = state === "live";
    pill.dataset.state = state;
    if (state === "live") {
      setText(pill, "Live");
      if (this.lostAt !== null) this.say("Connected again");
      this.lostAt = null;
      lost.hidden = true;
      document.body.removeAttribute("data-lost");
    } else if (state === "token") {
      setText(pill, "Token needed");
      byID("token").showModal();
    } else if (state === "waiting") {
      if (this.lostAt === null) this.lostAt = Date.now();
      setText(pill, "Reconnecting");
      lost.hidden = false;
      document.body.dataset.lost = "";
      lost.replaceChildren(
        `No connection to the server since ${clock(this.lostAt, 0)}: ${visible(reason)}. `,
        `Next attempt in ${duration(wait)}. `, button("Connect now", () => this.stream.connect()));
    } else if (this.lostAt === null) setText(pill, "Connecting");
    this.showBanner();
  }

  // Drawing

  frame(time) {
    if (time - (this.lastFrame ?? 0) >= frameTime) {
      this.lastFrame = time;
      this.draw(time);
    }
    requestAnimationFrame((next) => this.frame(next));
  }

  draw(time = performance.now()) {
    const now = this.now();
    this.pending.push(...this.model.takeChanged());
    if (time - this.lastList >= listTime) {
      this.lastList = time;
      this.drawLists();
    }
    this.chart.draw(this.charted(), now);
  }

  drawLists() {
    const now = this.now();
    this.pending.push(...this.model.takeChanged());
    this.table.update(this.pending);
    this.pending = [];
    if (!this.model.proxies.has(this.current)) this.current = this.model.proxies.keys().next().value ?? null;
    this.cards.update(this.model, now, this.current);
    this.showBanner();
    this.details.update();
    setText(byID("count"), this.table.summary());
    this.table.render();
    byID("empty").hidden = this.table.list.length > 0;
    setText(byID("empty"), this.emptyText());
    byID("grid").hidden = this.table.list.length === 0;
    byID("forgotten").hidden = this.model.forgotten === 0;
    setText(byID("forgotten"), `The page keeps the last ${this.model.limit.toLocaleString("en")} requests; `
      + `${count(this.model.forgotten, "older one")} left out.`);
    const { reader, rate, unknown } = this.model.dropped;
    const dropped = byID("dropped");
    dropped.hidden = reader + rate + unknown === 0;
    setText(dropped, `${count(reader + rate, "event")} dropped`
      + (unknown ? `, and an unknown number ${count(unknown, "time")}` : "")
      + (rate ? ": more than the stream carries" : ": the page was too slow or away"));
    this.speak();
  }

  /** Returns why the table is empty. */
  emptyText() {
    if (this.model.exchanges.length) return "No request matches.";
    const open = [...this.model.proxies.values()].some((proxy) => proxy.summary?.connections_open > 0);
    return open ? "No request yet. Requests on connections that were open before this page are not shown; "
      + "“Cut now” makes the clients connect again." : "No request yet.";
  }

  /** The proxies on the time axis: all of a few, else the current one. */
  charted() {
    const all = [...this.model.proxies.values()];
    return all.length <= 4 ? all : all.filter((proxy) => proxy.name === this.current);
  }

  showBanner() {
    const impaired = this.model.impaired();
    const now = this.now();
    const shown = impaired.slice(0, 4).map((proxy) => bannerText(proxy, now));
    if (impaired.length > 4) shown.push(`and ${impaired.length - 4} more`);
    const key = shown.join("\n");
    if (key !== this.bannerKey) {
      this.bannerKey = key;
      byID("banner-list").replaceChildren(...shown.map((text) => element("li", {}, element("bdi", {}, text))));
      byID("banner").hidden = impaired.length === 0;
    }
    const lost = this.lostAt !== null;
    const icon = `/dashboard/icon${lost ? "-lost" : impaired.length ? "-on" : ""}.svg`;
    if (byID("favicon").getAttribute("href") !== icon) byID("favicon").setAttribute("href", icon);
    const first = impaired[0];
    const more = impaired.length > 1 ? ` and ${impaired.length - 1} more` : "";
    const text = first ? `● ${conditionsOf(first).join(", ")} on ${visible(first.name)}${more} – Slowlane` : "Slowlane";
    const title = lost ? "No connection – Slowlane" : text;
    if (document.title !== title) document.title = title;
  }

  showPaused(on) {
    byID("pause").setAttribute("aria-pressed", String(on));
    setText(byID("pause-text"), on ? "Live" : "Pause");
    this.say(on ? "The time axis is paused" : "The time axis is live");
  }

  showSpan(span) {
    for (const button of document.querySelectorAll("[data-span]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.span) === span));
    }
    this.say(`Window of ${duration(span)}`);
  }

  showBrush(brush) {
    byID("brush").hidden = brush === null;
    this.table.setBrush(brush);
    if (brush) {
      const range = `${clock(brush.from)} to ${clock(brush.to)}`;
      setText(byID("brush-text"), `${range}, ${duration(brush.to - brush.from)}`);
      this.say(`Selected ${range}: ${this.table.summary()}`);
    }
    this.drawLists();
  }

  showRecording() {
    const on = this.model.recording?.state === "on";
    byID("record").setAttribute("aria-pressed", String(on));
    setText(byID("record-text"), on ? `Stop (${count(this.model.recording.steps ?? 0, "change")})` : "Record");
  }

  openExchange(x) {
    this.chart.selected = x.id;
    this.table.active = x.id;
    this.details.open(x);
    this.table.render();
  }

  detailsClosed() { this.chart.selected = null; }

  setCurrent(name, focus = false) {
    this.current = name;
    this.drawLists();
    if (focus) this.cards.focus(name);
  }

  /** Disables what changes something if the server's dashboard is read-only. */
  applyMode(root) {
    for (const node of root.querySelectorAll("[data-change]")) node.disabled = this.readOnly;
  }

  // Words for screen readers: the last of each kind, not more than one per captionTime.

  say(text) { this.queue.push(text); }

  sayLink(data) {
    const conditions = conditionsOf(this.model.proxy(data.proxy)).join(", ");
    this.say(`${visible(data.proxy)}: ${conditions || linkName("none")}`);
  }

  speak() {
    for (const text of this.model.takeCaptions()) this.queue.push(shortened(visible(text), 120));
    const now = performance.now();
    if (this.queue.length === 0 || now - this.captionAt < captionTime) return;
    this.captionAt = now;
    const last = this.queue.slice(-3);
    const more = this.queue.length - last.length;
    this.queue = [];
    setText(byID("caption"), last.join(". ") + (more > 0 ? `. And ${more} more.` : ""));
  }

  // Commands

  async run(work) {
    const problem = byID("problem");
    try {
      const { warning, data } = await work();
      problem.hidden = !warning;
      if (warning) problem.textContent = visible(warning);
      return data;
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error instanceof CallError ? visible(error.message) : "The server does not respond.";
      return undefined;
    }
  }

  /** Runs a command after those before it: on connections of their own, a later one could overtake an earlier one. */
  change(work) {
    if (this.readOnly) return Promise.resolve();
    this.commands = this.commands.then(() => this.run(work));
    return this.commands;
  }

  /** Returns the field of the automatic reset that is chosen for a proxy, if any. */
  resetOf(name) {
    const reset = this.cards.resetOf(name);
    return reset ? { reset_after_ms: reset } : {};
  }

  switchLink(name, profile) {
    this.setCurrent(name);
    return this.change(async () => {
      const proxy = this.model.proxies.get(name);
      if (proxy?.link?.outage?.up || proxy?.link?.outage?.down) await call("DELETE", proxyPath(name, "/outage"));
      if (profile === "none") return call("DELETE", proxyPath(name, "/link"));
      return call("PUT", proxyPath(name, "/link"), { profile, ...this.resetOf(name) });
    });
  }

  outage(name, directions) { return this.change(() => call("PUT", proxyPath(name, "/outage"), directions)); }

  loadTimeline(name, timeline) {
    return this.change(() => call("PUT", proxyPath(name, "/link"), { timeline, ...this.resetOf(name) }));
  }

  pauseTimeline(name) {
    const state = this.model.proxies.get(name)?.summary?.timeline;
    return this.change(() => call("PATCH", proxyPath(name, "/timeline"), { paused: state?.state !== "paused" }));
  }

  stepTimeline(name) {
    return this.change(async () => {
      const { data } = await call("GET", proxyPath(name, "/timeline"));
      if (!data?.next) throw new CallError(0, `The timeline of ${visible(name)} has no further change.`);
      const next = Math.ceil(Math.min(data.position_ms, data.round_ms) + data.next.in_ms);
      return call("PATCH", proxyPath(name, "/timeline"), { position_ms: next });
    });
  }

  async addFault(name, rule) {
    const fault = await this.change(() => call("POST", proxyPath(name, "/faults"), { rule }));
    if (fault) this.say(`Fault added: ${visible(rule)}`);
  }

  removeFault(name, fault) {
    return this.change(() => call("DELETE", proxyPath(name, `/faults/${encodeURIComponent(fault)}`)));
  }

  async disconnect(name, connection) {
    const path = connection === undefined ? "/connections" : `/connections/${connection}`;
    if (await this.change(() => call("DELETE", proxyPath(name, path))) !== undefined) this.say("Connections closed");
  }

  resetAll() { return this.change(() => call("POST", "/reset")); }

  async record() {
    const on = this.model.recording?.state === "on";
    const data = await this.change(() => call("POST", "/recording", { state: on ? "off" : "on" }));
    if (!on || data === undefined) return;
    const result = await this.run(() => call("GET", "/recording"));
    if (!result) return;
    byID("recording-yaml").textContent = result.yaml ?? "";
    byID("recording").showModal();
  }

  save() {
    const url = URL.createObjectURL(new Blob([byID("recording-yaml").textContent], { type: "application/yaml" }));
    const link = element("a", { href: url, download: "recorded.yaml" });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  async copy(text, name) {
    try {
      await navigator.clipboard.writeText(text);
      this.say(`Copied as ${name}`);
      byID("problem").hidden = true;
    } catch {
      byID("problem").hidden = false;
      byID("problem").textContent = "The browser does not permit copying; select the text instead.";
    }
  }

  /** Returns the built-in profiles and timelines; asks the server once. */
  profiles() {
    this.lists ??= call("GET", "/profiles").then(({ data }) => data, () => {
      this.lists = null;
      return { profiles: [], timelines: [] };
    });
    return this.lists;
  }

  setTheme(theme) {
    this.theme = theme;
    if (theme === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.dataset.theme = theme;
    setText(byID("theme-text"), `Colours: ${theme === "auto" ? "as the system" : theme}`);
    this.chart.readColors();
  }

  // Input

  listen() {
    byID("reset-all").addEventListener("click", () => this.resetAll());
    byID("record").addEventListener("click", () => this.record());
    byID("recording-save").addEventListener("click", () => this.save());
    byID("recording-copy").addEventListener("click", () => this.copy(byID("recording-yaml").textContent, "a scenario"));
    byID("help-open").addEventListener("click", () => this.help());
    byID("theme").addEventListener("click", () => this.nextTheme());
    byID("pause").addEventListener("click", () => this.togglePause());
    byID("brush-clear").addEventListener("click", () => { this.chart.setBrush(null); byID("chart").focus(); });
    for (const button of document.querySelectorAll("[data-span]")) {
      button.addEventListener("click", () => this.chart.setSpan(Number(button.dataset.span)));
    }
    byID("filter").addEventListener("input", () => this.filter());
    byID("token-form").addEventListener("submit", (event) => {
      event.preventDefault();
      setToken(byID("token-value").value);
      byID("token").close();
      this.stream.connect();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.chart.readColors());
    document.addEventListener("keydown", (event) => this.key(event));
    addEventListener("online", () => { if (!this.connected) this.stream.connect(); });
  }

  filter() {
    const { test, problem } = parseFilter(byID("filter").value);
    const note = byID("filter-problem");
    note.hidden = problem === null;
    setText(note, problem ?? "");
    byID("filter").setAttribute("aria-invalid", String(problem !== null));
    if (!test) return;
    this.table.setTest(test);
    this.drawLists();
  }

  togglePause() { this.chart.setEnd(this.chart.paused ? null : this.now()); }

  nextTheme() {
    const list = ["auto", "light", "dark"];
    const theme = list[(list.indexOf(this.theme) + 1) % 3];
    settings.set("theme", theme);
    this.setTheme(theme);
    this.say(byID("theme-text").textContent);
  }

  help() {
    byID("help-body").replaceChildren(...helpContent(this.keys, (on) => {
      this.keys = on;
      settings.set("keys", on ? "on" : "off");
    }));
    byID("help").showModal();
  }

  neighbour(step) {
    const names = [...this.model.proxies.keys()];
    if (names.length === 0) return;
    this.setCurrent(names[(names.indexOf(this.current) + step + names.length) % names.length], true);
  }

  key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    const focus = document.activeElement;
    const typing = focus && (focus.matches("input, textarea, select") || focus.isContentEditable);
    if (event.key === "Escape") {
      if (focus === byID("filter") && focus.value) { focus.value = ""; this.filter(); }
      else if (typing) focus.blur();
      else if (this.details.exchange) this.details.close();
      else this.chart.setBrush(null);
      return;
    }
    if (typing) return;
    if (event.key === "?") { this.help(); event.preventDefault(); return; }
    if (!this.keys) return;
    if (event.key === " " && focus && focus.matches("button, summary, a, [role=radio]")) return;
    const action = this.action(event.key);
    if (!action) return;
    event.preventDefault();
    action();
  }

  action(key) {
    const name = this.current;
    const position = positions.find((one) => one.key === key);
    const next = (rest) => () => this.addFault(name, `${this.cards.methodOf(name)} ${rest}`);
    const needsProxy = {
      d: next("before-response reset"), h: next("before-request-end delay 10s"), e: next("before-request respond 503"),
      x: () => this.disconnect(name), n: () => this.stepTimeline(name), o: () => this.switchLink(name, "offline"),
      O: () => this.outage(name, { up: true, down: true }),
    };
    if (position) return name === null ? undefined : () => this.switchLink(name, position.name);
    if (Object.hasOwn(needsProxy, key)) return name === null ? undefined : needsProxy[key];
    const always = {
      " ": () => this.togglePause(), "/": () => byID("filter").focus(), f: () => byID("filter").focus(),
      t: () => this.nextTheme(),
      r: () => this.record(), R: () => this.resetAll(), "[": () => this.neighbour(-1), "]": () => this.neighbour(1),
      w: () => this.chart.setSpan(this.chart.span === 60_000 ? 300_000 : 60_000),
      g: () => byID("grid").focus(), c: () => byID("chart").focus(),
    };
    return Object.hasOwn(always, key) ? always[key] : undefined;
  }
}

new Page();
