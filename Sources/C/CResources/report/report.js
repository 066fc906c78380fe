"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { Run, at, outcome, kind, linkKind, time } = RunHistory;
  const run = new Run(data.devices, data.writers);
  for (const entry of data.entries) run.add(entry);
  const result = data.run;
  const verdicts = { pass: "pass", fail: "fail", inconclusive: "inconclusive", error: "error" };
  const icons = { none: "", upload: "↑ waiting", conflict: "◆ conflict", error: "▲ error" };
  const span = Math.max(run.end, 1);
  const state = { from: 0, to: span, cursor: null, chosen: null, filter: "" };

  // MARK: Elements

  // Returns an element; every string becomes text.
  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes ?? {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  function shape(name, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function titled(made, text) {
    made.append(shape("title", {}, text));
    return made;
  }

  // MARK: The head

  const quoted = (word) => (/^[\w+\-./:@,]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

  function head() {
    const command = result.replay.map(quoted).join(" ");
    const copy = element("button", { onclick: () => copyText(command, copy) }, "copy");
    const facts = [
      ["seed", result.seed], ["world", result.world === "live" ? "live" : "simulated"], ["contract", data.contract],
      ["length", time(result.duration_ns / 1e6)], ["digest", result.digest], ["mutant", result.mutant],
      ["slowlane", data.slowlane],
    ].filter((fact) => fact[1]);
    return element("header", {},
      element("div", { class: "title" },
        element("span", { class: `badge ${result.result}` }, verdicts[result.result] ?? result.result),
        element("h1", {}, result.name)),
      element("p", { class: "about" }, data.about),
      element("dl", { class: "facts" },
        ...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", { class: "mono" }, value)))),
      element("div", { class: "replay" }, element("code", {}, command), copy));
  }

  async function copyText(text, button) {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      button.textContent = "select and copy";
    }
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  }

  // MARK: Checks

  // Failures precede what is inconclusive, often because of them.
  const badChecks = ["fail", "inconclusive"].flatMap((word) => result.checks.filter((check) => check.outcome === word));

  function decided() {
    if (badChecks.length === 0 && result.errors.length === 0) return null;
    const shown = badChecks.slice(0, 4).map((check) => element("div", { class: `decided ${check.outcome}` },
      element("strong", {}, check.check),
      element("span", {}, check.reason ?? ""),
      check.advice ? element("span", { class: "soft" }, `to do: ${check.advice}`) : null,
      element("span", { class: "soft" }, `${check.file}:${check.line ?? ""}`,
        check.time_ns === null ? "" : " · ",
        check.time_ns === null ? "" : element("button", { onclick: () => setCursor(check.time_ns / 1e6, true) },
          `show ${time(check.time_ns / 1e6)}`))));
    const more = badChecks.length > 4 ? [element("div", { class: "decided" }, `and ${badChecks.length - 4} more below`)] : [];
    const errors = result.errors.map((text) => element("div", { class: "decided" }, text));
    return element("section", { "aria-label": "what decided" }, ...errors, ...shown, ...more);
  }

  function checks() {
    const rows = [...badChecks, ...result.checks.filter((check) => check.outcome === "pass")].map((check) => {
      const words = { pass: "ok", fail: "fail", inconclusive: "inconclusive" };
      const style = { pass: "ok", fail: "error", inconclusive: "conflict" }[check.outcome];
      return element("tr", {},
        element("td", { class: style }, words[check.outcome]), element("td", {}, check.check),
        element("td", { class: "num wide" }, check.time_ns === null ? "" : time(check.time_ns / 1e6)),
        element("td", { class: "mono wide" }, `${check.file}:${check.line ?? ""}`));
    });
    const impossible = (result.not_possible ?? []).map((check) => element("tr", {},
      element("td", { class: "soft" }, "not possible"), element("td", {}, `${check.check}: ${check.reason}`),
      element("td", { class: "wide" }), element("td", { class: "mono wide" }, `${check.file}:${check.line ?? ""}`)));
    return section("Expectations and invariants", null,
      element("div", { class: "table", tabindex: "0" }, element("table", {},
        element("thead", {}, element("tr", {}, ...["result", "check", "time", "location"].map((name, index) =>
          element("th", { scope: "col", class: index > 1 ? "wide" : null }, name)))),
        element("tbody", {}, ...rows, ...impossible))),
      element("ul", { class: "lines soft" }, ...data.invariants.map((line) => element("li", {}, line))));
  }

  function section(name, controls, ...content) {
    return element("section", { "aria-label": name },
      element("div", { class: "bar" }, element("h2", {}, name), element("span", { class: "space" }), ...(controls ?? [])),
      ...content);
  }

  // MARK: The chart

  const left = 84;
  const laneHeight = 96;
  const barHeight = 9;
  let width = 1000;
  const chart = shape("svg", { role: "img", tabindex: "0", "aria-label": "devices, links and requests over time" });
  const x = (t) => left + ((t - state.from) / (state.to - state.from)) * (width - left - 12);
  const timeAt = (position) => state.from + ((position - left) / (width - left - 12)) * (state.to - state.from);
  const clamp = (t) => Math.min(span, Math.max(0, t));
  const within = (from, to) => to >= state.from && from <= state.to;

  function ticks() {
    const rough = (state.to - state.from) / Math.max(2, (width - left) / 110);
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5]
      .find((value) => value >= rough) ?? 72e5;
    const found = [];
    for (let t = Math.ceil(state.from / step) * step; t <= state.to; t += step) found.push(t);
    return found;
  }

  function draw() {
    const lanes = [...run.devices, ...run.writers.filter((writer) => writer.acts.length > 0)];
    const height = 26 + run.devices.length * laneHeight + (lanes.length - run.devices.length) * 40;
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.style.height = `${height}px`;
    const parts = [];
    for (const t of ticks()) {
      parts.push(shape("line", { class: "grid", x1: x(t), x2: x(t), y1: 18, y2: height }));
      // A label that does not fit is left out.
      if (x(t) < width - 60) parts.push(shape("text", { class: "soft", x: x(t) + 3, y: 14 }, time(t)));
    }
    let top = 24;
    for (const lane of lanes) {
      parts.push(...(lane.links ? deviceLane(lane, top) : writerLane(lane, top)));
      top += lane.links ? laneHeight : 40;
    }
    if (state.cursor !== null && within(state.cursor, state.cursor)) {
      parts.push(shape("line", { class: "cursor", x1: x(state.cursor), x2: x(state.cursor), y1: 0, y2: height }));
    }
    const clip = shape("clipPath", { id: "plot" }, shape("rect", { x: left, y: 0, width: Math.max(1, width - left - 8), height }));
    const plot = shape("g", { "clip-path": "url(#plot)" }, ...parts.filter((part) => !part.classList.contains("name")));
    const names = parts.filter((part) => part.classList.contains("name"));
    chart.replaceChildren(clip, plot, ...names);
  }

  function deviceLane(device, top) {
    const parts = [shape("text", { class: "name", x: 12, y: top + 16 }, device.name)];
    device.links.forEach((link, index) => {
      const end = device.links[index + 1]?.t ?? span;
      if (!within(link.t, end)) return;
      const from = x(Math.max(link.t, state.from));
      const room = x(Math.min(end, state.to)) - from;
      const name = link.isUp ? link.link : `${link.link}, interface down`;
      parts.push(titled(shape("rect", {
        class: `link-${linkKind(link.link, link.isUp)}`, x: from, y: top, width: Math.max(1, room), height: laneHeight - 8,
      }), `${name} from ${time(link.t)}`));
      if (room > 7 * name.length) parts.push(shape("text", { class: "soft", x: from + 4, y: top + 13 }, name));
    });
    for (const stop of device.stops) {
      const end = device.starts.find((start) => start > stop) ?? span;
      if (!within(stop, end)) continue;
      const room = Math.max(2, x(end) - x(stop));
      parts.push(titled(shape("rect", { class: "stopped", x: x(stop), y: top, width: room, height: laneHeight - 8 }),
        `the app is stopped at ${time(stop)}, and starts at ${time(end)}`));
      if (room > 50) parts.push(shape("text", { class: "soft", x: x(stop) + 3, y: top + 28 }, "stopped"));
    }
    parts.push(...requestBars(device.name, top + 20, 4), ...acts(device.acts, top + 64), outboxLine(device, top + 70));
    return parts;
  }

  function writerLane(writer, top) {
    return [shape("text", { class: "name", x: 12, y: top + 16 }, writer.name), ...requestBars(writer.name, top + 4, 2),
      ...acts(writer.acts, top + 30)];
  }

  // Returns the requests as bars in rows: each in the first row that is free.
  function requestBars(actor, top, rows) {
    const parts = [];
    const ends = Array(rows).fill(-Infinity);
    for (const exchange of run.exchanges) {
      if (exchange.actor !== actor) continue;
      const end = exchange.ended ?? span;
      const from = x(exchange.sent);
      const to = Math.max(from + 3, x(end));
      let row = ends.findIndex((value) => value <= from);
      if (row < 0) row = ends.indexOf(Math.min(...ends));
      ends[row] = to + 1;
      if (!within(exchange.sent, end)) continue;
      const y = top + row * (barHeight + 2);
      const label = `${exchange.method} ${exchange.note ?? "list"}: ${outcome(exchange)}`;
      const bar = titled(shape("rect", {
        class: `hit bar-${kind(exchange)}`, x: from, y, width: to - from, height: barHeight, rx: 2,
      }), `${label}, ${time(exchange.sent)} to ${time(end)}`);
      bar.addEventListener("click", (event) => { event.stopPropagation(); choose(exchange); });
      parts.push(bar);
      // The part at the server.
      if (exchange.arrived !== null && x(exchange.arrived) - from > 2) {
        parts.push(shape("rect", { class: "served", x: x(exchange.arrived) - 1, y, width: 2, height: barHeight, "pointer-events": "none" }));
      }
      for (const fault of exchange.faults) {
        const f = x(fault.t);
        parts.push(titled(shape("path", { class: "fault", d: `M${f - 4} ${y}l8 ${barHeight}m0 ${-barHeight}l-8 ${barHeight}` }),
          `fault ${data.faults[fault.fault] ?? fault.fault} at ${time(fault.t)}`));
      }
    }
    return parts;
  }

  function acts(list, y) {
    return list.filter((act) => within(act.t, act.t)).map((act) => titled(
      shape("path", { class: "act", d: `M${x(act.t)} ${y}l-4 -7h8z` }), `${act.text} at ${time(act.t)}`));
  }

  function outboxLine(device, top) {
    const most = Math.max(1, ...device.views.map((entry) => entry.view.outbox));
    const y = (count) => top + 16 - (count / most) * 14;
    let path = "";
    device.views.forEach((entry, index) => {
      path += index === 0 ? `M${x(entry.t)} ${y(entry.view.outbox)}` : `H${x(entry.t)}V${y(entry.view.outbox)}`;
    });
    return titled(shape("path", { class: "outbox", d: `${path}H${x(span)}` }), `outbox of ${device.name}, at most ${most}`);
  }

  // MARK: The moment

  const moment = element("div", { class: "devices" });
  const momentTitle = element("span", { class: "num", "aria-live": "polite" });

  function drawMoment() {
    const t = state.cursor ?? span;
    momentTitle.textContent = `at ${time(t)}`;
    moment.replaceChildren(...run.devices.map((device) => {
      const view = at(device.views, t)?.view;
      const link = at(device.links, t);
      const belief = at(device.beliefs, t);
      const isStopped = device.stops.filter((stop) => stop <= t).length > device.starts.filter((start) => start <= t).length - 1
        && device.stops.some((stop) => stop <= t && !device.starts.some((start) => start > stop && start <= t));
      const shown = [...(view?.notes.values() ?? [])].slice(0, 50);
      const rest = (view?.notes.size ?? 0) - shown.length;
      return element("div", { class: "phone" },
        element("div", { class: "head" }, element("strong", {}, device.name), element("span", { class: "soft" }, link?.link ?? "")),
        element("div", { class: "soft" }, isStopped ? "stopped" : belief ? `believes: ${belief.text}` : "", ` · outbox ${view?.outbox ?? 0}`),
        ...shown.map((note) => element("div", { class: note.deleted ? "note deleted" : "note" },
          element("span", { class: "name" }, note.title ?? note.note),
          element("span", { class: `state ${note.icon === "conflict" ? "conflict" : note.icon === "error" ? "error" : "soft"}` },
            note.deleted ? "✕ deletion waiting" : icons[note.icon] ?? note.icon),
          element("span", { class: "text" }, note.text ?? ""))),
        rest > 0 ? element("span", { class: "soft" }, `and ${rest} more notes`) : null);
    }));
  }

  function setCursor(t, scroll) {
    state.cursor = clamp(t);
    if (state.cursor < state.from || state.cursor > state.to) zoom(state.cursor - (state.to - state.from) / 2, state.to - state.from);
    history.replaceState(null, "", `#t=${(state.cursor / 1000).toFixed(3)}`);
    draw();
    drawMoment();
    if (scroll) chart.scrollIntoView({ block: "center" });
  }

  function zoom(from, length) {
    const size = Math.min(span, Math.max(length, 5));
    state.from = Math.min(Math.max(0, from), span - size);
    state.to = state.from + size;
    draw();
    drawTable();
  }

  function scale(factor, center) {
    const size = (state.to - state.from) * factor;
    const middle = center ?? state.cursor ?? (state.from + state.to) / 2;
    zoom(middle - ((middle - state.from) / (state.to - state.from)) * size, size);
  }

  // MARK: The table

  const duration = (t) => (t < 1000 ? `${t < 10 ? t.toFixed(1) : Math.round(t)} ms` : time(t));

  const body = element("tbody", {});
  const count = element("span", { class: "soft num", "aria-live": "polite" });
  const rowsMax = 1000;

  function drawTable() {
    const words = state.filter.toLowerCase().split(/[\s&]+/).filter((word) => word !== "");
    const found = run.exchanges.filter((exchange) => {
      if (!within(exchange.sent, exchange.ended ?? span)) return false;
      const text = [exchange.actor, exchange.method, exchange.note ?? "list", outcome(exchange), kind(exchange), exchange.link ?? "",
        exchange.faults.length > 0 ? "fault" : ""].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    count.textContent = found.length > rowsMax ? `first ${rowsMax} of ${found.length}` : `${found.length} of ${run.exchanges.length}`;
    body.replaceChildren(...found.slice(0, rowsMax).map((exchange) => {
      const row = element("tr", {
        tabindex: "0", class: state.chosen === exchange.id ? "chosen" : null, onclick: () => choose(exchange),
        onkeydown: (event) => { if (event.key === "Enter") choose(exchange); },
      },
      element("td", { class: "num" }, time(exchange.sent)), element("td", {}, exchange.actor),
      element("td", { class: "mono" }, `${exchange.method} ${exchange.note ?? "list"}`),
      element("td", { class: "wide" }, exchange.link ?? ""),
      element("td", { class: "num" }, exchange.ended === null ? "" : duration(exchange.ended - exchange.sent)),
      element("td", { class: "num wide" }, exchange.base === null ? "" : `base ${exchange.base}`),
      element("td", { class: "num wide" }, `${exchange.up} / ${exchange.down}`),
      element("td", { class: kind(exchange) }, outcome(exchange),
        exchange.faults.length > 0 ? ` · fault: ${exchange.faults.map((fault) => data.faults[fault.fault] ?? fault.fault).join(", ")}` : ""));
      return row;
    }));
  }

  function choose(exchange) {
    state.chosen = exchange.id;
    setCursor(exchange.ended ?? exchange.sent, false);
    drawTable();
  }

  // MARK: The page

  const filter = element("input", {
    type: "search", placeholder: "filter: PUT n1 lost", "aria-label": "filter requests",
    oninput: () => { state.filter = filter.value; drawTable(); },
  });
  const controls = [momentTitle,
    element("button", { onclick: () => scale(0.5), "aria-label": "zoom in" }, "+"),
    element("button", { onclick: () => scale(2), "aria-label": "zoom out" }, "−"),
    element("button", { onclick: () => zoom(0, span) }, "whole run")];
  const columns = ["time", "who", "request", "link", "took", "base", "bytes ↑ / ↓", "end"];
  const main = element("main", {}, head(), decided(),
    section("Timeline", controls, chart),
    section("Devices", null, moment),
    section("Requests", [filter, count], element("div", { class: "table", tabindex: "0" }, element("table", {},
      element("thead", {}, element("tr", {}, ...columns.map((name) =>
        element("th", { scope: "col", class: ["link", "base", "bytes ↑ / ↓"].includes(name) ? "wide" : null }, name)))), body))),
    checks(),
    element("p", { class: "soft" }, "Click the timeline to choose a moment, drag to zoom. On the timeline, ",
      element("kbd", {}, "←"), " ", element("kbd", {}, "→"), " move, ", element("kbd", {}, "+"), " ", element("kbd", {}, "-"),
      " zoom, ", element("kbd", {}, "0"), " shows the whole run."));
  document.body.append(main);

  let drag = null;
  const position = (event) => {
    const box = chart.getBoundingClientRect();
    return ((event.clientX - box.left) / box.width) * width;
  };
  chart.addEventListener("pointerdown", (event) => { drag = position(event); });
  chart.addEventListener("pointermove", (event) => {
    if (drag === null) return;
    chart.querySelector(".selection")?.remove();
    const [low, high] = [drag, position(event)].sort((one, other) => one - other);
    chart.append(shape("rect", { class: "selection", x: low, y: 0, width: high - low, height: "100%" }));
  });
  window.addEventListener("pointerup", (event) => {
    if (drag === null) return;
    const [low, high] = [drag, position(event)].sort((one, other) => one - other);
    drag = null;
    chart.querySelector(".selection")?.remove();
    if (high - low > 6) zoom(timeAt(low), timeAt(high) - timeAt(low));
    else if (chart.contains(event.target)) setCursor(timeAt(low), false);
  });
  chart.addEventListener("keydown", (event) => {
    const step = (state.to - state.from) / 50;
    const t = state.cursor ?? state.from;
    if (event.key === "ArrowRight") setCursor(t + step, false);
    else if (event.key === "ArrowLeft") setCursor(t - step, false);
    else if (event.key === "+") scale(0.5);
    else if (event.key === "-") scale(2);
    else if (event.key === "0") zoom(0, span);
    else return;
    event.preventDefault();
  });

  function resize() {
    width = Math.max(320, chart.parentElement.clientWidth);
    draw();
  }

  function readHash() {
    const found = /[#&]t=([\d.]+)/.exec(location.hash);
    if (found) setCursor(Number(found[1]) * 1000, false);
  }

  window.addEventListener("resize", resize);
  window.addEventListener("hashchange", readHash);
  resize();
  drawTable();
  const first = badChecks.find((check) => check.time_ns !== null);
  if (first) state.cursor = first.time_ns / 1e6;
  drawMoment();
  readHash();
  draw();
})();
