// Texts for people: times, durations, bytes, and hostile texts made visible.

const two = (n) => String(n).padStart(2, "0");

/** Returns the local time of a moment in milliseconds since 1970: `14:03:51.2`. */
export function clock(t, decimals = 1) {
  const date = new Date(t);
  const whole = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (decimals === 0) return whole;
  const part = String(Math.floor(date.getMilliseconds())).padStart(3, "0").slice(0, decimals);
  return `${whole}.${part}`;
}

/** Returns a duration in milliseconds with its unit: `840 ms`, `1.2 s`, `4 min 10 s`. */
export function duration(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  if (ms < 0) ms = 0;
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`;
  const min = Math.round(s / 60);
  return min % 60 ? `${Math.floor(min / 60)} h ${min % 60} min` : `${min / 60} h`;
}

/** Returns the time that is left as `4:10`. */
export function countdown(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return s >= 3600
    ? `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`
    : `${Math.floor(s / 60)}:${two(s % 60)}`;
}

/** Returns a number of bytes with its unit: `182 B`, `1.2 kB`. 1 kB is 1000 B. */
export function bytes(n) {
  if (n === null || n === undefined) return "–";
  if (n < 1000) return `${Math.round(n)} B`;
  for (const unit of ["kB", "MB", "GB", "TB"]) {
    n /= 1000;
    if (n < 999.5 || unit === "TB") return `${n < 9.95 ? n.toFixed(1) : Math.round(n)} ${unit}`;
  }
}

/** Returns a rate in bytes per second with its unit. */
export const rate = (n) => `${bytes(n)}/s`;

/** Returns a rate in bits per second with its unit. */
export function bitRate(n) {
  if (n === null || n === undefined) return "unlimited";
  if (n >= 10_000_000) return `${Number((n / 1e6).toFixed(1))} Mbit/s`;
  return `${Number((n / 1000).toFixed(1))} kbit/s`;
}

/** Returns a number and a noun in its plural. */
export const count = (n, noun, plural = `${noun}s`) => `${n.toLocaleString("en")} ${n === 1 ? noun : plural}`;

// Control characters, and characters that change the direction of text or cannot be seen.
const invisible = new RegExp("[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e"
  + "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]", "g");

/** Returns a text from the network with its invisible characters as escapes, so that it shows what it is. */
export const visible = (text) =>
  String(text ?? "").replace(invisible, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** What marks requests inside of intercepted TLS. */
export const lock = "\u{1F512} ";

/** Returns the beginning of a text. */
export const shortened = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

const names = {
  none: "No conditions", "100-loss": "100 % loss", wifi: "Wi-Fi", lte: "LTE", "3g": "3G", edge: "Edge",
  offline: "Offline", outage: "Outage",
  portal: "Captive portal", dns: "DNS failure", "uplink-loss": "Uplink loss", "downlink-loss": "Downlink loss", custom: "Custom",
  "very-bad-network": "Very bad network", "high-latency-dns": "High-latency DNS", dsl: "DSL",
};

/** Returns the name of a link for people. */
export const linkName = (name) => (Object.hasOwn(names, name) ? names[name] : visible(name));

/** Returns an element with attributes and children; strings become text nodes. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Returns a button; `data-change` marks those that are disabled on a read-only page. */
export const button = (text, click, attributes = {}) =>
  element("button", { type: "button", class: "outline", onclick: click, ...attributes }, text);

/** The attribute of controls that change something. */
export const change = { "data-change": true };

/** Sets the text of an element if it differs: an equal text would be announced and laid out again. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
