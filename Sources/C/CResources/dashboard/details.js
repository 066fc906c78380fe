// The panel of one exchange: what happened when, and what can be done about the next one like it.

import { button, bytes, clock, duration, element, linkName, lock, visible } from "./format.js";
import { endText } from "./model.js";
import { curl, pytest, ruleOf, swiftTest, title } from "./snippets.js";

const code = { curl: ["curl", curl], swift: ["Swift", swiftTest], pytest: ["pytest", pytest] };

/** Returns what happened to an exchange as a sentence. */
export function sentence(x) {
  const after = x.ms === null ? "" : ` after ${duration(x.ms)}`;
  const fault = x.fault ? ` The fault '${visible(x.fault.name)}' fired at ${visible(x.fault.point)}.` : "";
  if (x.kind === "connection") {
    if (x.finish === null) {
      return x.secure ? "This connection is open; the proxy ends its TLS." : "This connection is open; its bytes are not HTTP.";
    }
    return `This connection ended${after}: ${visible(x.reason)}.`;
  }
  const texts = {
    "lost-in-request": `Lost${after}: the server did not get the whole request.`,
    "lost-before-commit":
      `Lost${after}: the server had the request, its response never was complete. The outcome is unknown.`,
    "lost-after-commit":
      `Lost${after}: the server has executed the request, the client did not get the response. A retry must be idempotent.`,
    switched: `The connection switched to another protocol${after}.`,
    completed: `The client had the response ${x.status ?? ""}${after}.`,
    unknown: "The end of this request was not seen: events were missing.",
  };
  if (x.end === null) return `Waits for ${waitsFor(x)}.${fault}`;
  return (texts[x.end] ?? endText(x)) + fault;
}

function waitsFor(x) {
  if (x.times.response_started) return "the rest of the response";
  if (x.times.request_delivered) return "the server's response";
  return "the delivery of the request";
}

function phases(x) {
  const { times } = x;
  const list = [
    ["connect", times.opened, x.start], ["send", x.start, times.request_delivered],
    ["wait", times.request_delivered, times.response_started],
    ["receive", times.response_started, times.response_delivered],
  ];
  if (x.outcome === "lost" && x.finish !== null) {
    list.push(["lost", times.response_read ?? times.response_started ?? times.request_delivered ?? x.start, x.finish]);
    if (!times.request_delivered) list.splice(1, 1);
  }
  const known = (t) => t !== null && t !== undefined;
  return list.filter(([, from, to]) => known(from) && known(to) && to >= from);
}

/** The panel. */
export class Details {
  constructor(page) {
    this.page = page;
    this.node = document.getElementById("details");
    this.exchange = null;
    this.tab = "curl";
    this.drawn = "";
    this.node.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.close();
    });
  }

  open(x) {
    this.before = this.before ?? document.activeElement;
    this.exchange = x;
    this.drawn = "";
    this.node.hidden = false;
    document.body.dataset.details = "";
    this.update();
    this.node.querySelector("h2").focus({ preventScroll: true });
  }

  close() {
    if (this.exchange === null) return;
    this.exchange = null;
    this.node.hidden = true;
    delete document.body.dataset.details;
    if (this.before?.isConnected) this.before.focus({ preventScroll: true });
    this.before = null;
    this.page.detailsClosed();
  }

  /** Draws the panel again if its exchange has changed. */
  update() {
    const x = this.exchange;
    if (!x) return;
    const drawn = JSON.stringify([{ ...x, group: null, matches: null }, this.tab, this.page.readOnly]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const focused = this.node.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    this.node.replaceChildren(...this.content(x));
    if (focused) this.node.querySelector(`[data-key="${focused}"]`)?.focus({ preventScroll: true });
  }

  content(x) {
    const proxy = this.page.model.proxies.get(x.proxy);
    const list = phases(x);
    const total = Math.max(1, list.reduce((sum, [, from, to]) => sum + to - from, 0));
    const facts = [
      ["Started", clock(x.start, 3)], ["Proxy", visible(x.proxy)], ["Client", visible(x.client ?? "unknown")],
      ...(x.destination ? [["Server", visible(x.destination)]] : []),
      ...(x.secure ? [["TLS", `${lock}${visible(x.secure)}, intercepted`]] : []),
      ["Connection", x.stream ? `${x.connection}, stream ${x.stream} of HTTP/2` : String(x.connection)], ["Link at the start", linkName(x.link ?? "none")],
      ["Attempt", String(x.attempt)], ["Request body", bytes(x.requestBytes)],
      ["Response body", bytes(x.responseBytes)],
    ];
    const bars = list.map(([name, from, to]) => {
      const bar = element("span", { class: `phase ${name}` });
      bar.style.flexGrow = String(Math.max(0.004, (to - from) / total));
      return bar;
    });
    return [
      element("div", { class: "bar" },
        element("h2", { id: "details-title", tabindex: "-1", "data-key": "title" }, element("bdi", {}, title(x))),
        button("×", () => this.close(), { class: "quiet icon", "aria-label": "Close the details", "data-key": "close" })),
      element("p", { class: "sentence", "data-outcome": x.outcome }, sentence(x)),
      bars.length ? element("div", { class: "phases", "aria-hidden": "true" }, ...bars) : null,
      list.length ? element("dl", { class: "times" }, ...list.flatMap(([name, from, to]) => [
        element("dt", { class: name }, name), element("dd", {}, duration(to - from)),
      ])) : null,
      element("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [
        element("dt", {}, name), element("dd", {}, element("bdi", {}, value)),
      ])),
      this.page.readOnly || !proxy || x.kind === "connection" ? null : this.actions(x),
      x.kind === "connection" ? null : this.snippets(x, proxy),
    ].filter(Boolean);
  }

  actions(x) {
    const act = (key, text, rule) =>
      button(text, () => this.page.addFault(x.proxy, rule), { "data-key": key, title: rule });
    return element("div", { class: "stack" },
      element("h3", {}, "Next request like this one"),
      element("div", { class: "actions" },
        act("lose", "Drop the response", ruleOf(x)),
        act("drop", "Drop the request", ruleOf(x, "before-request-end reset")),
        act("delay", "Delay 10 s", ruleOf(x, "before-request-end delay 10s")),
        act("503", "Respond 503 once", ruleOf(x, "before-request respond 503")),
        button("Disconnect now", () => this.page.disconnect(x.proxy, x.connection), {
          class: "outline danger", "data-key": "disconnect", disabled: x.finish !== null,
        })));
  }

  snippets(x, proxy) {
    const [name, make] = code[this.tab];
    const text = make(x, proxy);
    const show = (key) => {
      this.tab = key;
      this.update();
    };
    const tabs = Object.entries(code).map(([key, [label]]) => button(label, () => show(key), {
      class: null, role: "tab", id: `tab-${key}`, "data-key": `tab-${key}`, "aria-selected": String(key === this.tab),
      "aria-controls": "snippet", tabindex: key === this.tab ? "0" : "-1",
    }));
    const move = (event) => {
      const keys = Object.keys(code);
      const step = { ArrowRight: 1, ArrowLeft: keys.length - 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      show(keys[(keys.indexOf(this.tab) + step) % keys.length]);
      document.getElementById(`tab-${this.tab}`).focus();
    };
    return element("div", { class: "stack" },
      element("div", { class: "bar" },
        element("div", { class: "segments", role: "tablist", "aria-label": "Copy as", onkeydown: move }, ...tabs),
        button("Copy", () => this.page.copy(text, name), { class: "quiet", "data-key": "copy" })),
      element("pre", { id: "snippet", role: "tabpanel", tabindex: "0", "aria-labelledby": `tab-${this.tab}` }, text));
  }
}
