// A card for each proxy: the switch of its link, the numbers that explain it, and its faults.

import {
  bitRate, button, bytes, change, clock, count, countdown, duration, element, linkName, lock, rate, setText, visible,
} from "./format.js";
import { hiddenHosts, severity, shownLink } from "./model.js";

/** The positions of the switch; the key of each is its number. */
export const positions = [
  { key: "0", name: "none", label: "Off", title: "No conditions" },
  { key: "1", name: "wifi", label: "Wi-Fi" },
  { key: "2", name: "lte", label: "LTE" },
  { key: "3", name: "3g", label: "3G" },
  { key: "4", name: "edge", label: "Edge" },
  { key: "5", name: "100-loss", label: "100 %", title: "100 % loss: connections stall" },
  { key: "6", name: "offline", label: "Offline", title: "Connections fail at once" },
];

// A number stays on the line of its unit.
const whole = (text) => text.replaceAll(" ", "\u00a0");

const resets = [
  ["", "Until changed"], ["30000", "for 30 s"], ["60000", "for 1 min"], ["300000", "for 5 min"], ["900000", "for 15 min"],
];
const methods = ["any", "GET", "POST", "PUT", "PATCH", "DELETE"];
const cardsMax = 30;
const faultsMax = 50;

/** Returns the conditions that apply to a proxy as short texts. */
export function conditionsOf(proxy) {
  const link = proxy.link;
  const texts = [];
  const name = shownLink(link);
  if (!proxy.enabled) texts.push("disabled");
  if (link?.timeline) texts.push(`${visible(link.timeline)} (${linkName(name)})`);
  else if (name === "outage") texts.push("Outage");
  else if (name !== "none") texts.push(linkName(name));
  if (proxy.toxics.length) texts.push(count(proxy.toxics.length, "toxic"));
  if (proxy.faults.size) texts.push(count(proxy.faults.size, "fault"));
  if (texts.length === 0 && proxy.applies) texts.push("conditions");
  return texts;
}

const policies = {
  offline: "New connections fail at once; open ones were reset.",
  portal: "Every request gets the sign-in page of a captive portal.",
  dns: "The server's name does not resolve: connections are refused.",
};

function describe(link) {
  if (!link) return "";
  const name = shownLink(link);
  if (name === "outage") return "All packets are lost; connections stay open and stall.";
  if (name === "none") return "Everything passes unchanged.";
  if (Object.hasOwn(policies, link.connection_policy)) return policies[link.connection_policy];
  const side = (arrow, one) => {
    if (!one) return null;
    const loss = one.loss_percent ? `, ${Number(one.loss_percent.toFixed(3))} % loss` : "";
    return `${arrow} ${bitRate(one.rate_bps)}, ${duration(one.delay_ms ?? 0)}${loss}`;
  };
  return [side("↓", link.down), side("↑", link.up)].filter(Boolean).join(" · ");
}

class Card {
  constructor(page, name) {
    this.page = page;
    this.name = name;
    this.profiles = null;
    const id = `p${Card.next += 1}`;
    const stat = (key, label, title) => {
      const value = element("dd", {});
      this[key] = value;
      return element("div", { title }, element("dt", {}, label), value);
    };
    const shown = visible(name);
    this.buttons = positions.map((position) => element("button", {
      type: "button", role: "radio", "aria-checked": "false", tabindex: "-1", "data-name": position.name, ...change,
      title: `${position.title ?? position.label} (${position.key})`,
      onclick: () => page.switchLink(name, position.name),
    }, element("span", {}, position.label), element("kbd", { "aria-hidden": "true" }, position.key)));
    this.radios = element("div", {
      class: "switch", role: "radiogroup", "aria-label": `Link of ${shown}`, onkeydown: (event) => this.arrow(event),
    }, ...this.buttons);
    this.reset = element("select", { "aria-label": `How long the next link of ${shown} applies`, ...change },
      ...resets.map(([value, label]) => element("option", { value }, label)));
    this.toggle = button("More", () => this.expand(), {
      class: "quiet", "aria-expanded": "false", "aria-controls": `${id}-more`,
    });
    this.more = element("div", { class: "more", id: `${id}-more`, hidden: true });
    this.title = button(element("bdi", {}, shown), () => page.setCurrent(name), { class: "name" });
    this.address = element("span", { class: "muted address" });
    this.now = element("p", { class: "now grow" });
    this.timeline = element("div", { class: "timeline", hidden: true });
    this.hidden = element("p", { class: "muted hint", hidden: true });
    this.faults = element("ul", { class: "faults", "aria-label": "Faults", hidden: true });
    this.method = element("select", { "aria-label": "Method of the next request", ...change },
      ...methods.map((one) => element("option", { value: one }, one === "any" ? "request" : one)));
    const fault = (text, rest, title) =>
      button(text, () => page.addFault(name, `${this.method.value} ${rest}`), { ...change, title });
    const next = element("div", { class: "next", role: "group", "aria-label": `Next request of ${shown}` },
      element("span", { class: "muted" }, "Next"), this.method,
      fault("Drop", "before-response reset", "The server executes the request; its response is lost (d)"),
      fault("Delay", "before-request-end delay 10s", "The request reaches the server 10 s later (h)"),
      fault("503 once", "before-request respond 503", "The client gets 503; the server gets nothing (e)"),
      button("Disconnect now", () => page.disconnect(name), {
        ...change, class: "outline danger", title: "Resets all open connections (x)",
      }));
    this.node = element("article", { class: "card", "aria-labelledby": `${id}-name` },
      element("div", { class: "card-top" },
        element("h3", { id: `${id}-name` }, this.title), this.address, element("span", { class: "grow" }),
        this.radios, this.reset, this.toggle),
      element("div", { class: "card-second" }, this.now, next),
      this.faults, this.hidden,
      element("dl", { class: "stats" },
        stat("roundTrip", "Round trip", "The mean of the smoothed round trips of the modelled connections"),
        stat("queue", "Queue", "Bytes that wait at the link, and how long the next packet waits"),
        stat("rates", "Rate", "Bytes per second over the last second"),
        stat("losses", "Lost in 60 s", "Packets lost on the modelled link or dropped at its queue"),
        stat("resent", "Resent in 60 s", "Packets that TCP has retransmitted because of losses"),
        stat("open", "Connections", "Open connections, and exchanges without a complete response")),
      this.timeline,
      this.more);
  }

  arrow(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const index = this.buttons.indexOf(document.activeElement);
    if (step && index >= 0) {
      const to = this.buttons[(index + step + this.buttons.length) % this.buttons.length];
      for (const one of this.buttons) one.tabIndex = one === to ? 0 : -1;
      to.focus();
      event.preventDefault();
    }
  }

  async expand() {
    const open = this.more.hidden;
    this.more.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
    if (!open || this.more.childNodes.length) return;
    const { page, name } = this;
    const act = (text, title, run) => button(text, run, { ...change, title });
    const group = (label, ...nodes) =>
      element("div", { role: "group", "aria-label": label }, element("span", { class: "muted" }, label), ...nodes);
    const profile = element("select", { "aria-label": `Profile of ${visible(name)}`, ...change },
      element("option", { value: "" }, "Other profile"));
    profile.addEventListener("change", () => {
      if (profile.value) page.switchLink(name, profile.value);
      profile.value = "";
    });
    const listID = `${this.more.id}-timelines`;
    const names = element("datalist", { id: listID });
    const timeline = element("input", {
      list: listID, "aria-label": `Timeline of ${visible(name)}`, placeholder: "subway, or 0s: 3g, 20s: 100-loss",
      spellcheck: "false", ...change,
    });
    const load = element("form", { class: "inline" }, timeline, names,
      element("button", { class: "outline", ...change }, "Load"));
    load.addEventListener("submit", (event) => {
      event.preventDefault();
      if (timeline.value.trim()) page.loadTimeline(name, timeline.value.trim());
    });
    this.more.append(
      group("Interruption",
        act("Outage", "All packets are lost; connections stay open (O)",
          () => page.outage(name, { up: true, down: true })),
        act("Offline", "Open connections are reset, new ones fail at once (6)", () => page.switchLink(name, "offline")),
        act("Uplink loss", "Requests are lost, responses pass", () => page.outage(name, { up: true, down: false })),
        act("Downlink loss", "Responses are lost, requests pass", () => page.outage(name, { up: false, down: true }))),
      group("Other links",
        act("Captive portal", "Every request gets a sign-in page", () => page.switchLink(name, "portal")),
        act("DNS failure", "The server's name does not resolve", () => page.switchLink(name, "dns")),
        act("Very bad", "1 Mbit/s, 500 ms, 10 % loss", () => page.switchLink(name, "very-bad-network")), profile),
      group("Timeline", load));
    page.applyMode(this.more);
    const lists = await page.profiles();
    for (const one of lists.profiles) profile.append(element("option", { value: one.id, title: one.about }, one.name));
    for (const one of lists.timelines) names.append(element("option", { value: one.id }, one.name));
  }

  update(proxy, now, current) {
    const { link, summary } = proxy;
    const name = shownLink(link);
    this.node.dataset.current = String(current);
    this.title.setAttribute("aria-current", current ? "true" : "false");
    this.node.dataset.link = severity(name, link);
    const secure = proxy.intercept.length ? ` ${lock}${proxy.intercept.map(visible).join(", ")}` : "";
    setText(this.address, `${visible(proxy.listen)} → ${visible(proxy.upstream)}${secure}${proxy.enabled ? "" : " (disabled)"}`);
    this.address.title = proxy.seed === null ? "" : `seed ${proxy.seed}`;
    const checked = link?.timeline ? null : name;
    let has = false;
    for (const one of this.buttons) {
      const on = one.dataset.name === checked;
      has ||= on;
      if ((one.getAttribute("aria-checked") === "true") !== on) one.setAttribute("aria-checked", String(on));
    }
    if (!this.radios.contains(document.activeElement)) {
      this.buttons.forEach((one, index) => {
        one.tabIndex = (has ? one.dataset.name === checked : index === 0) ? 0 : -1;
      });
    }
    const also = has || link?.timeline ? "" : `${name === "outage" ? "Outage" : linkName(name)}: `;
    const left = link?.reset_at ? ` – resets in ${countdown(link.reset_at - now)}` : "";
    setText(this.now, `${also}${describe(link)}${left}`);
    this.updateStats(proxy, summary, link, now);
    this.updateTimeline(summary?.timeline ?? null, link);
    this.updateFaults(proxy);
  }

  updateStats(proxy, summary, link, now) {
    const stalled = summary?.stalled ?? {};
    const base = (link?.up?.delay_ms ?? 0) + (link?.down?.delay_ms ?? 0);
    const wait = (summary?.queue_delay_ms?.up ?? 0) + (summary?.queue_delay_ms?.down ?? 0);
    const measured = summary?.round_trip_ms ?? null;
    if (stalled.up && stalled.down) setText(this.roundTrip, "stalled");
    else if (stalled.up || stalled.down) setText(this.roundTrip, `${stalled.up ? "↑" : "↓"} stalled`);
    else if (measured !== null) setText(this.roundTrip, duration(measured));
    else setText(this.roundTrip, base + wait > 0 ? `≥ ${duration(base + wait)}` : "–");
    const queue = summary?.queue_bytes ?? { up: 0, down: 0 };
    const waiting = Math.max(summary?.queue_delay_ms?.up ?? 0, summary?.queue_delay_ms?.down ?? 0);
    setText(this.queue, queue.up + queue.down === 0 ? "empty" : `${bytes(queue.up + queue.down)} · ${duration(waiting)}`);
    const [up, down] = [summary?.rate?.up ?? 0, summary?.rate?.down ?? 0].map(rate);
    setText(this.rates, `${whole(`↑ ${up}`)} ${whole(`↓ ${down}`)}`);
    setText(this.losses, count(proxy.increase("losses", 60_000, now), "packet"));
    setText(this.resent, count(proxy.increase("retransmissions", 60_000, now), "packet"));
    const number = (field) => (summary?.[field] ?? 0).toLocaleString("en");
    const failed = summary?.dials_failed ? ` · ${number("dials_failed")} failed` : "";
    setText(this.open, `${number("connections_open")} open · ${number("connections_waiting")} waiting${failed}`);
  }

  updateTimeline(timeline, link) {
    const state = link?.timeline ? timeline : null;
    this.timeline.hidden = !link?.timeline;
    if (!link?.timeline) return;
    if (!this.timeline.childNodes.length) {
      const { page, name } = this;
      this.timelineText = element("span", {});
      this.timelinePause = button("Pause", () => page.pauseTimeline(name), change);
      this.timeline.append(this.timelineText, this.timelinePause,
        button("Step", () => page.stepTimeline(name), { ...change, title: "Jump to the next change (n)" }));
      page.applyMode(this.timeline);
    }
    const parts = [`Timeline ${visible(link.timeline)}`];
    if (state) {
      parts.push(` at ${countdown(state.round_ms ?? state.position_ms ?? 0)}: ${linkName(state.link ?? "none")}`);
      if (state.ramping) parts.push(" (ramp)");
      if (state.next) {
        parts.push(`, then ${linkName(state.next.link)} in ${duration(Math.round(state.next.in_ms / 1000) * 1000)}`);
      }
    }
    setText(this.timelineText, parts.join(""));
    setText(this.timelinePause, state?.state === "paused" ? "Continue" : "Pause");
  }

  updateFaults(proxy) {
    const hosts = hiddenHosts(proxy).map(visible);
    this.hidden.hidden = hosts.length === 0;
    setText(this.hidden, hosts.length === 0 ? "" : `Faults of requests cannot see inside the TLS of ${hosts.join(", ")}. `
      + `Intercept it: --intercept '${hosts.join(",")}', or "intercept" in the API (docs/how-to/https.md).`);
    const key = JSON.stringify([...proxy.faults.values()].map((fault) => [fault.name, fault.rule, fault.fired]));
    if (key === this.faultsKey) return;
    this.faultsKey = key;
    this.faults.hidden = proxy.faults.size === 0;
    this.faults.replaceChildren(...[...proxy.faults.values()].slice(0, faultsMax).map((fault) => element("li", { class: "chip" },
      element("bdi", {}, visible(fault.rule)),
      element("span", { class: "muted" }, fault.fired ? ` fired ${fault.fired}` : " waiting"),
      button("×", () => this.page.removeFault(proxy.name, fault.name), {
        ...change, class: "chip-close", "aria-label": `Remove the fault ${visible(fault.name)}`,
      }))));
    this.page.applyMode(this.faults);
  }
}
Card.next = 0;

/** The cards of all proxies. */
export class Cards {
  constructor(page) {
    this.page = page;
    this.node = document.getElementById("proxies");
    this.none = document.getElementById("no-proxies");
    this.cards = new Map();
    this.wanted = "";
    this.search = element("input", {
      type: "search", "aria-label": "Proxies by name", placeholder: "Proxies by name", class: "search", hidden: true,
    });
    this.search.addEventListener("input", () => { this.wanted = this.search.value.toLowerCase(); page.draw(); });
    this.rest = element("p", { class: "muted", hidden: true });
    this.node.before(this.search);
    this.node.after(this.rest);
  }

  update(model, now, current) {
    const matching = [...model.proxies.values()].filter((proxy) => proxy.name.toLowerCase().includes(this.wanted));
    const shown = matching.slice(0, cardsMax);
    for (const [name, card] of this.cards) {
      if (shown.some((proxy) => proxy.name === name)) continue;
      card.node.remove();
      this.cards.delete(name);
    }
    shown.forEach((proxy, index) => {
      let card = this.cards.get(proxy.name);
      if (!card) {
        card = new Card(this.page, proxy.name);
        this.cards.set(proxy.name, card);
        this.page.applyMode(card.node);
      }
      if (this.node.children[index] !== card.node) this.node.insertBefore(card.node, this.node.children[index] ?? null);
      card.update(proxy, now, proxy.name === current);
    });
    this.search.hidden = model.proxies.size <= 8;
    this.none.hidden = model.proxies.size > 0 || model.server === null;
    this.rest.hidden = matching.length <= shown.length;
    setText(this.rest, `${shown.length} of ${count(matching.length, "proxy", "proxies")} shown`);
  }

  /** Returns how long the next link of a proxy is to apply in ms, or null. */
  resetOf(name) {
    const value = this.cards.get(name)?.reset.value;
    return value ? Number(value) : null;
  }

  methodOf(name) { return this.cards.get(name)?.method.value ?? "any"; }

  focus(name) { this.cards.get(name)?.title.focus(); }
}

/** Returns the sentence of the banner for a proxy. */
export function bannerText(proxy, now) {
  const since = proxy.since !== null ? `, since ${clock(proxy.since, 0)}` : "";
  const reset = proxy.link?.reset_at ? `, resets in ${countdown(proxy.link.reset_at - now)}` : "";
  return `${visible(proxy.name)}: ${conditionsOf(proxy).join(", ")}${since}${reset}`;
}
