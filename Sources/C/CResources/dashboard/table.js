// The table of exchanges, newest first. Only the rows in view are in the document.

import { bytes, clock, count, duration, element, linkName, lock, setText, visible } from "./format.js";
import { endText } from "./model.js";

const extra = 6;

/** The table. */
export class Table {
  constructor(model, open) {
    this.model = model;
    this.open = open;
    this.grid = document.getElementById("grid");
    this.body = document.getElementById("rows");
    this.list = [];
    this.test = () => true;
    this.brush = null;
    this.active = null;
    this.pool = new Map();
    this.generation = -1;
    this.stale = true;
    this.grid.addEventListener("scroll", () => this.render(), { passive: true });
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("click", (event) => {
      const row = event.target.closest("[data-id]");
      if (row) this.choose(this.pool.get(row.dataset.id)?.exchange, true);
    });
    this.measure();
    new ResizeObserver(() => { this.measure(); this.render(); }).observe(this.grid);
  }

  measure() {
    this.rowHeight = parseFloat(getComputedStyle(this.grid).getPropertyValue("--row")) || 34;
    this.head = this.grid.querySelector(".head").offsetHeight;
  }

  /** Sets the filter, and tests every exchange again. */
  setTest(test) {
    this.test = test;
    for (const x of this.model.exchanges) x.matches = test(x);
    this.stale = true;
  }

  setBrush(brush) { this.brush = brush; this.stale = true; }

  /** Takes over what has changed; returns whether anything is to be drawn. */
  update(changed) {
    for (const x of changed) x.matches = this.test(x);
    if (changed.length || this.generation !== this.model.generation) this.stale = true;
    this.generation = this.model.generation;
  }

  rebuild() {
    const list = [];
    const { brush } = this;
    const all = this.model.exchanges;
    for (let index = all.length - 1; index >= 0; index -= 1) {
      const x = all[index];
      if (!x.matches) continue;
      if (brush && (x.start > brush.to || (x.finish ?? Infinity) < brush.from)) continue;
      list.push(x);
    }
    // A reader who has scrolled down keeps the rows in view: new ones come above them.
    const top = Math.floor(this.grid.scrollTop / this.rowHeight);
    const anchor = top > 0 ? this.list[top] : null;
    this.list = list;
    this.stale = false;
    this.body.style.height = `${list.length * this.rowHeight}px`;
    this.grid.setAttribute("aria-rowcount", String(list.length + 1));
    if (anchor) {
      const now = list.indexOf(anchor);
      if (now > top) this.grid.scrollTop += (now - top) * this.rowHeight;
    }
  }

  render() {
    if (this.stale) this.rebuild();
    const from = Math.max(0, Math.floor(this.grid.scrollTop / this.rowHeight) - extra);
    const to = Math.min(this.list.length, from + Math.ceil(this.grid.clientHeight / this.rowHeight) + 2 * extra);
    const wanted = new Set();
    for (let index = from; index < to; index += 1) wanted.add(String(this.list[index].id));
    const free = [];
    for (const [id, row] of this.pool) {
      if (wanted.has(id)) continue;
      this.pool.delete(id);
      free.push(row);
    }
    for (let index = from; index < to; index += 1) {
      const x = this.list[index];
      const id = String(x.id);
      let row = this.pool.get(id);
      if (!row) {
        row = free.pop() ?? this.makeRow();
        row.text = "";
        this.pool.set(id, row);
      }
      this.fill(row, x, index);
    }
    for (const row of free) row.node.remove();
    const active = this.active === null ? null : this.pool.get(String(this.active));
    if (active) this.grid.setAttribute("aria-activedescendant", active.node.id);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  makeRow() {
    const cell = (name) => element("span", { role: "gridcell", class: name });
    const cells = ["c-time", "c-proxy", "c-what", "c-try", "c-link", "c-ms", "c-bytes", "c-end"].map(cell);
    const method = element("b", {});
    const target = element("bdi", {});
    cells[2].append(method, " ", target);
    const node = element("div", { class: "row", role: "row" }, ...cells);
    this.body.append(node);
    return { node, cells, method, target, text: "" };
  }

  fill(row, x, index) {
    row.exchange = x;
    const { node, cells } = row;
    node.style.transform = `translateY(${index * this.rowHeight}px)`;
    node.setAttribute("aria-rowindex", String(index + 2));
    node.setAttribute("aria-selected", String(this.active === x.id));
    const end = x.kind === "connection" ? x.reason ?? "open" : endText(x);
    const text = `${x.id} ${x.status} ${x.ms} ${end} ${x.client} ${x.requestBytes} ${x.responseBytes} ${x.link} ${x.secure}`;
    if (row.text === text) return;
    row.text = text;
    node.dataset.id = String(x.id);
    node.id = `row-${String(x.id).replace(/[^0-9a-z]/gi, "-")}`;
    node.dataset.outcome = x.outcome;
    setText(cells[0], clock(x.start));
    setText(cells[1], visible(x.proxy));
    setText(row.method, visible(x.method));
    const secure = x.secure === null || x.secure === undefined ? "" : lock;
    setText(row.target, secure + visible(x.target));
    cells[2].title = secure ? `${visible(x.target)} – intercepted TLS of ${visible(x.secure)}` : visible(x.target);
    setText(cells[3], x.attempt > 1 ? String(x.attempt) : "");
    setText(cells[4], x.link === "none" || !x.link ? "" : linkName(x.link));
    setText(cells[5], x.ms === null ? "…" : duration(x.ms));
    setText(cells[6], `${bytes(x.requestBytes)}  ${bytes(x.responseBytes)}`);
    setText(cells[7], x.status !== null && x.end === "completed" ? `${x.status}${x.fault ? " by a fault" : ""}` : end);
  }

  /** Selects an exchange, and shows its details if asked. */
  choose(x, open) {
    if (!x) return;
    this.active = x.id;
    const index = this.list.indexOf(x);
    if (index >= 0) {
      const y = index * this.rowHeight;
      const room = this.grid.clientHeight - this.head - this.rowHeight;
      if (y < this.grid.scrollTop) this.grid.scrollTop = y;
      else if (y > this.grid.scrollTop + room) this.grid.scrollTop = y - room;
    }
    this.render();
    if (open) this.open(x);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.list.length === 0) return;
    const now = this.list.findIndex((x) => x.id === this.active);
    const page = Math.max(1, Math.floor((this.grid.clientHeight - this.head) / this.rowHeight) - 1);
    const last = this.list.length - 1;
    const to = {
      ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + page, PageUp: now - page, Home: 0, End: last,
    }[event.key];
    if (to !== undefined) this.choose(this.list[Math.min(last, Math.max(0, to))], false);
    else if (event.key === "Enter") this.choose(this.list[Math.max(0, now)], true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Returns what the table shows, in words. */
  summary() {
    const all = this.model.exchanges.length;
    if (this.stale) this.rebuild();
    const shown = this.list.length;
    return shown === all ? count(all, "request") : `${shown.toLocaleString("en")} of ${count(all, "request")}`;
  }
}
