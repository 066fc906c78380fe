"use strict";
(() => {
  const { Run, at, outcome, kind, linkKind } = RunHistory;
  const length = 60_000;
  // A step starts at `t`; at `done` what its caption says has happened.
  const steps = [
    {
      t: 0, done: 7_000, name: "As usual", line: "Two devices, one account.", see: "It works as usual.",
      legacy: { see: "It works as usual." },
    },
    {
      t: 8_000, done: 17_000, name: "The tunnel", line: "The phone is in a tunnel. Ada types anyway.",
      see: "The text is there at once: no spinner, no error. A small mark says that it waits.",
      legacy: { see: "The text is there, and a mark says that it waits: so far so good." },
    },
    {
      t: 18_000, done: 27_000, name: "Both edit", line: "Meanwhile the same note is edited on the tablet.",
      see: "Two truths, and neither device is wrong.", legacy: { see: "Two truths, and neither device is wrong." },
    },
    {
      t: 28_000, done: 36_000, name: "The conflict", line: "Back on slow 2G. The server refuses the old edit (409 Conflict).",
      see: "Nobody was overwritten: the phone shows both texts.",
      legacy: {
        line: "Back on slow 2G. The phone hides the conflict.",
        see: "The phone pastes both texts into the note, and does not ask Ada. The mark vanishes, and nothing more is sent.",
      },
    },
    {
      t: 38_000, done: 47_000, name: "The decision", line: "Ada decides. One revision everywhere.",
      see: "The marks are gone, and the tablet follows.",
      legacy: { line: "Ada is not asked. The devices differ.", see: "The phone shows no conflict, so that Ada has nothing to decide." },
    },
    {
      t: 48_000, done: length, name: "A lost response", line: "Worst case: saved, but the response is lost.",
      see: "Ada types on, and the phone sends the note again with the same ID, so that the server knows it already. "
        + "There is still one note, with her last words.",
      legacy: { see: "Ada types on. The response to the repeated request replaces her last words." },
    },
  ];
  const places = [["A", "Ada's phone"], ["B", "Ada's tablet"]];
  const shortNames = { A: "the phone", B: "the tablet" };
  // A promise is kept or broken from `from` on: then the run has tested it.
  const promises = [
    { name: "nothing is lost", from: 32_200, words: ["no-lost-write"] },
    { name: "nothing is doubled", from: 51_000, words: ["no-duplicate-effect", "POST n3"] },
    { name: "typed text stays", from: 51_000, words: ["read-your-writes"] },
    { name: "conflicts are shown", from: 32_200, words: ["no-silent-overwrite", "icon conflict", "resolves n1"], needsScript: true },
    { name: "the same everywhere", from: 57_000, words: ["convergence", "agree"] },
  ];
  const linkNames = { wifi: "Wi-Fi", "3g": "3G", lte: "LTE", edge: "slow 2G (EDGE)", "100-loss": "100 % loss", clear: "fast network" };
  const marks = { none: "", upload: "↑ waiting", conflict: "◆ conflict", error: "▲ error" };
  const state = { t: 0, speed: 1, isPlaying: true, client: "current", source: "simulated", run: null, document: null, last: null, live: null, viewer: "", isEdited: false, plays: 0 };
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes ?? {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  // MARK: Data

  const embedded = document.getElementById("data");
  const recorded = embedded ? JSON.parse(embedded.textContent) : null;

  async function load(client) {
    if (recorded) return recorded[client];
    const response = await fetch(`run.json?client=${client}`);
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return response.json();
  }

  async function play(client) {
    endLive();
    state.client = client;
    state.source = "simulated";
    notice("");
    state.plays += 1;
    const current = state.plays;
    // The promises of the run before are not those of this client.
    state.document = null;
    if (state.run) show();
    try {
      const data = await load(client);
      // The viewer has chosen another run meanwhile.
      if (current !== state.plays) return;
      state.document = data;
      state.run = new Run(data.devices, data.writers);
      for (const entry of data.entries) state.run.add(entry);
    } catch (error) {
      notice(`The run cannot be loaded (${error.message}). Is 'slowlane demo' still running?`);
      return;
    }
    show();
  }

  // Plays the same scenario over real sockets: every entry comes from the stream when it happens.
  function playLive() {
    endLive();
    state.plays += 1;
    state.source = "live";
    state.document = null;
    state.speed = 1;
    state.isPlaying = true;
    state.t = 0;
    state.run = new Run([{ name: "A", user: "ada" }, { name: "B", user: "ada" }], []);
    notice("");
    state.viewer = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    state.isEdited = false;
    const stream = new EventSource(`live?client=${state.client}&viewer=${state.viewer}`);
    state.live = stream;
    let begin = null;
    stream.addEventListener("entry", (event) => {
      const entry = JSON.parse(event.data);
      if (begin === null) begin = performance.now() - entry.t;
      state.run.add(entry);
      state.t = Math.max(state.t, entry.t);
    });
    stream.addEventListener("end", (event) => {
      state.document = JSON.parse(event.data);
      stream.close();
      state.live = null;
      state.isPlaying = false;
      state.t = length;
      show();
    });
    stream.addEventListener("failed", (event) => {
      notice(JSON.parse(event.data).reason);
      endLive();
    });
    stream.onerror = () => {
      if (state.live !== stream) return;
      notice("The stream has ended. Is 'slowlane demo' still running?");
      endLive();
    };
    state.liveTime = () => (begin === null ? 0 : performance.now() - begin);
    show();
  }

  // Performs an act of the viewer on a device of the run over real sockets.
  async function act(device, body) {
    state.isEdited = true;
    const response = await fetch(`act?viewer=${state.viewer}`, {
      method: "POST", headers: { "X-Slowlane-Dashboard": "1", "Content-Type": "application/json" },
      body: JSON.stringify({ device, ...body }),
    }).catch(() => null);
    notice(response?.ok ? "" : "The run has ended: what you typed is not part of it.");
  }

  function endLive() {
    state.live?.close();
    state.live = null;
  }

  // MARK: The page

  const caption = { step: element("div", { class: "step" }), line: element("div", { class: "line" }), see: element("div", { class: "soft" }) };
  const noticeLine = element("p", { class: "notice", role: "status" });
  const slider = element("input", {
    type: "range", min: 0, max: length, step: 100, value: 0, "aria-label": "time",
    oninput: () => { state.t = Number(slider.value); state.isPlaying = false; show(); },
  });
  const clock = element("span", { class: "num" });
  const playButton = element("button", { onclick: togglePlay });
  const restartButton = element("button", { onclick: () => { state.t = 0; state.isPlaying = true; show(); } }, "restart");
  const speeds = [1, 2, 10].map((speed) => element("button", { "aria-pressed": "false", onclick: () => { state.speed = speed; state.isPlaying = true; show(); } }, `${speed}×`));
  const stepButtons = steps.map((step, index) => element("button", {
    onclick: () => goTo(step), title: step.line,
  }, `${index + 1} ${step.name}`));
  const clientButtons = [["current", "a correct client"], ["legacy", "a client with defects"]].map(([client, name]) => [client, element("button", {
    "aria-pressed": "false", onclick: () => { state.t = 0; state.isPlaying = true; play(client); },
  }, name)]);
  const liveButton = element("button", { "aria-pressed": "false", onclick: playLive }, "live on this computer: type yourself");
  const promiseList = element("ul", { class: "promises", "aria-label": "promises" });
  const reasonList = element("ul", { class: "reasons", "aria-label": "broken promises" });
  const legend = element("ul", { class: "legend", "aria-label": "messages" }, ...[["dot", "request"], ["dot answer", "response"],
    ["dot conflict", "409 conflict"], ["dot lost", "lost"]].map(([classes, name]) => element("li", {}, element("i", { class: classes }), name)));
  const phones = {};
  const wires = {};
  for (const [name, title] of places) {
    const note = element("select", { "aria-label": `note on ${title}` });
    const text = element("input", { type: "text", maxlength: 500, "aria-label": `your text on ${title}`, placeholder: "type here" });
    const form = element("form", {
      class: "typing", hidden: "",
      onsubmit: (event) => { event.preventDefault(); act(name, { note: note.value, text: text.value }); text.value = ""; },
    }, note, text, element("button", {}, "save"));
    const content = element("div", { class: "content" });
    phones[name] = { section: element("section", { class: "phone", "aria-label": title }, content, form), content, form, note };
    const pipe = element("div", { class: "pipe" });
    wires[name] = { label: element("div", { class: "link" }), pipe, box: null };
    wires[name].box = element("div", { class: "wire" }, pipe, wires[name].label);
  }
  const server = element("section", { class: "server", "aria-label": "server" });
  document.body.append(element("main", {},
    element("div", { class: "head" }, element("h1", {}, "Slowlane: offline first in sixty seconds"), element("span", { class: "space" }),
      ...clientButtons.map((pair) => pair[1]), recorded ? null : liveButton),
    element("div", { class: "caption", "aria-live": "polite" }, caption.step, caption.line, caption.see),
    element("nav", { class: "steps", "aria-label": "steps" }, ...stepButtons),
    element("div", { class: "stage" }, phones.A.section, wires.A.box, server, wires.B.box, phones.B.section),
    element("div", { class: "time" },
      element("div", { class: "head buttons" }, playButton, ...speeds, restartButton),
      slider, clock),
    element("div", { class: "outcome" }, promiseList, reasonList), legend, noticeLine,
    element("p", { class: "soft" }, "Phone and tablet run real sync code; nothing here is drawn by hand. Keys: space plays and pauses, ← and → go to the steps.")));

  function notice(text) { noticeLine.textContent = text; }

  function togglePlay() {
    if (state.source === "live" && state.live) return;
    if (state.t >= length) state.t = 0;
    state.isPlaying = !state.isPlaying;
    show();
  }

  // Goes to a step: to its start while the run is played, otherwise to the time at which its caption is true.
  function goTo(step) {
    state.t = state.isPlaying ? step.t : step.done;
    show();
  }

  function show() {
    if (!state.run) return;
    const t = Math.min(state.t, state.run.end || length);
    const index = steps.findLastIndex((step) => state.t >= step.t);
    const step = steps[Math.max(0, index)];
    setText(caption.step, `step ${index + 1} of ${steps.length}: ${step.name}`);
    const words = state.client === "legacy" ? { ...step, ...step.legacy } : step;
    // Only a run over real sockets has fields for text.
    setText(caption.line, words.line + (index === 0 && state.live ? " Type on either one." : ""));
    setText(caption.see, words.see);
    stepButtons.forEach((button, number) => {
      button.setAttribute("aria-pressed", String(number === index));
      button.disabled = state.live !== null;
    });
    for (const [client, button] of clientButtons) button.setAttribute("aria-pressed", String(client === state.client));
    liveButton.setAttribute("aria-pressed", String(state.source === "live"));
    speeds.forEach((button, number) => {
      button.setAttribute("aria-pressed", String([1, 2, 10][number] === state.speed));
      button.disabled = state.source === "live" && state.live !== null && number > 0;
    });
    setText(playButton, state.live ? "live" : state.isPlaying ? "pause" : "play");
    playButton.disabled = restartButton.disabled = state.live !== null;
    slider.value = state.t;
    slider.disabled = state.live !== null;
    setText(clock, `${(Math.min(state.t, length) / 1000).toFixed(1)} s`);
    for (const [name, title] of places) showPhone(name, title, t);
    showServer(t);
    for (const [name] of places) showWire(name, state.t);
    showPromises(t);
  }

  function setText(target, text) { if (target.textContent !== text) target.textContent = text; }

  // Replaces the content of an element if it has changed; animations and the focus stay otherwise.
  function replace(target, key, make) {
    if (target.dataset.key === key) return;
    target.dataset.key = key;
    target.replaceChildren(...make());
  }

  function showPhone(name, title, t) {
    const device = state.run.byName.get(name);
    const view = at(device.views, t)?.view;
    const belief = at(device.beliefs, t)?.text ?? "";
    const bars = belief.startsWith("online") ? "▂▄▆" : belief.startsWith("interface") ? "no service" : "▂ ·  ·";
    const notes = [...(view?.notes.values() ?? [])];
    const { content, form, note: select } = phones[name];
    form.hidden = state.live === null;
    const choices = notes.map((note) => [note.note, note.title ?? note.note]);
    if (document.activeElement !== select) {
      const chosen = select.value;
      replace(select, JSON.stringify(choices), () => choices.map(([value, label]) => element("option", { value }, label)));
      if (choices.some(([value]) => value === chosen)) select.value = chosen;
    }
    const isLive = state.live !== null;
    replace(content, JSON.stringify([bars, view?.outbox, notes, isLive]), () => [
      element("div", { class: "top" }, element("h2", {}, title, " ", element("small", {}, name)), element("span", { class: "soft" }, bars)),
      ...notes.map((note) => {
        const others = note.icon === "conflict" ? note.kept.filter((text) => text !== note.text && text !== note.title) : [];
        const classes = ["card", note.icon === "conflict" ? "conflict" : "", note.deleted ? "gone" : "", note.icon === "none" ? "" : "fresh"];
        return element("div", { class: classes.filter((word) => word !== "").join(" ") },
          element("div", { class: "row" }, element("span", {}, note.title ?? "", " ", element("small", {}, note.note)), element("span", { class: "state" }, marks[note.icon] ?? note.icon)),
          element("div", {}, note.text ?? ""),
          ...others.slice(0, 1).map((text) => element("div", { class: "other" }, `on ${shortNames[name === "A" ? "B" : "A"]}: ${text}`)),
          isLive && note.icon === "conflict" ? element("div", { class: "choices" },
            element("button", { onclick: () => act(name, { note: note.note, choice: "mine" }) }, "keep mine"),
            element("button", { onclick: () => act(name, { note: note.note, choice: "theirs" }) }, "take the other")) : null);
      }),
      element("div", { class: "soft" }, unsent(view, notes)),
    ]);
  }

  // What a device has not sent: a change in conflict waits for its user.
  function unsent(view, notes) {
    const conflicts = notes.filter((note) => note.icon === "conflict").length;
    const parts = [
      view?.outbox ? `${view.outbox} ${view.outbox === 1 ? "change" : "changes"} to send` : "",
      conflicts ? `${conflicts} waiting for Ada's decision` : "",
    ].filter(Boolean);
    return parts.join(", ") || "all sent";
  }

  // The notes and the log of the server, from the responses to requests.
  function showServer(t) {
    const revisions = new Map([["n1", 1]]);
    const log = [];
    for (const exchange of state.run.exchanges) {
      if (exchange.responded === null || exchange.responded > t || exchange.method === "GET") continue;
      const isDone = exchange.serverStatus < 300;
      if (isDone && exchange.revision !== null) revisions.set(exchange.note, exchange.revision);
      if (isDone && exchange.method === "DELETE") revisions.delete(exchange.note);
      const base = exchange.base === null ? "" : ` base ${exchange.base}`;
      const style = exchange.serverStatus === 409 ? "conflict" : isDone ? "ok" : "error";
      log.push([`${exchange.actor} ${exchange.method} ${exchange.note}${base} → ${exchange.serverStatus}`, style]);
    }
    const names = [...revisions].map(([note, revision]) => [note, `revision ${revision}`]);
    replace(server, JSON.stringify([names, log]), () => [
      element("h2", {}, "Server"),
      element("div", { class: "revisions num" }, ...names.map(([note, revision]) => element("span", {}, element("b", {}, note), ` ${revision}`))),
      element("ol", { "aria-label": "log of the server" }, ...log.slice(-9).map(([text, style]) => element("li", { class: style }, text))),
    ]);
  }

  // The time for which a message is drawn at least, so that it can be seen on a fast link.
  const drawn = 700;

  function showWire(name, t) {
    const device = state.run.byName.get(name);
    const link = at(device.links, Math.min(t, state.run.end || length));
    const wire = wires[name];
    const style = link ? linkKind(link.link, link.isUp) : "fast";
    wire.pipe.className = `pipe ${style}`;
    const linkName = link ? (style === "down" ? "tunnel, no service" : linkNames[link.link] ?? link.link) : "";
    const dots = [];
    const fromLeft = name === "A";
    for (const exchange of state.run.exchanges) {
      if (exchange.actor !== name || exchange.sent > t) continue;
      const label = `${exchange.method} ${exchange.note ?? "list"}`;
      const requestEnd = Math.max(exchange.sent + drawn, exchange.arrived ?? exchange.ended ?? t);
      if (t <= requestEnd) {
        const share = Math.min(1, (t - exchange.sent) / (requestEnd - exchange.sent));
        dots.push([label, exchange.arrived === null && exchange.isLost ? "dot lost" : "dot", exchange.arrived === null ? share / 2 : share]);
      } else if (exchange.responded !== null) {
        const begin = Math.max(exchange.responded, requestEnd);
        const end = Math.max(begin + drawn, exchange.ended ?? t);
        if (t > end) continue;
        const share = Math.min(1, (t - begin) / (end - begin));
        const classes = exchange.isLost ? "dot lost" : kind(exchange) === "conflict" ? "dot conflict" : "dot answer";
        dots.push([`${exchange.serverStatus}`, classes, 1 - (exchange.isLost ? share / 2 : share)]);
      }
    }
    // Without motion the messages are told instead of drawn.
    setText(wire.label, [linkName, ...(calm ? dots.slice(-2).map(([label]) => label) : [])].join(" · "));
    wire.pipe.replaceChildren(...(calm ? [] : dots.slice(-4)).map(([label, classes, share], index, shown) => {
      const below = classes === "dot answer" || classes === "dot conflict";
      // Labels on one side of the pipe are stacked.
      const level = shown.slice(0, index).filter((other) => (other[1] === "dot answer" || other[1] === "dot conflict") === below).length;
      const text = element("span", {}, label);
      text.style[below ? "top" : "bottom"] = `${18 + 14 * level}px`;
      const dot = element("div", { class: classes }, text);
      dot.style.left = `${4 + 92 * (fromLeft ? share : 1 - share)}%`;
      return dot;
    }));
  }

  // Returns the time from which a failed check is seen: that of a lost write or a hidden conflict when the mark vanishes.
  function seenFrom(check) {
    const t = check.time_ns === null ? length : check.time_ns / 1e6;
    const lost = check.check.includes("no-lost-write") ? /^(\w+) \w+ (\w+) at /.exec(check.reason ?? "") : null;
    const hidden = /(\w+) (\w+) icon conflict/.exec(check.check);
    const [, actor, note] = lost ?? hidden ?? [];
    const refused = state.run.exchanges.find((exchange) => exchange.actor === actor && exchange.note === note && exchange.status === 409);
    const start = lost ? t : refused?.ended ?? t;
    const gone = state.run.byName.get(actor)?.views.find((entry) => entry.t > start && entry.view.notes.get(note)?.icon === "none");
    return gone ? gone.t : t;
  }

  // The reasons of the checks in the words of the page; another reason is shown as it is.
  const reasons = [
    [/^(\w+) edits (\w+) at ([\d.]+ s), and the change is neither on the server nor shown as pending$/,
      (device, note, time) => `what Ada typed into ${note} on ${device} at ${time} is not on the server, and is not waiting to be sent`],
    [/^(\w+) shows an older text of (\w+) at ([\d.]+ s) than the change at ([\d.]+ s)$/,
      (device, note, time, change) => `at ${time} ${device} shows an older text of ${note} than Ada typed at ${change}`],
    [/^(\w+) shows (\w+) at the end, unlike the server$/, (device, note) => `at the end ${device} has another ${note} than the server`],
    [/^(\w+) and (\w+) differ in (\w+)$/, (one, other, note) => `${one} and ${other} have different texts in ${note}`],
  ];

  function inWords(check) {
    const title = (name) => {
      const first = state.run.devices.flatMap((device) => device.views).find((entry) => entry.view.notes.has(name));
      return shortNames[name] ?? first?.view.notes.get(name).title ?? name;
    };
    const hidden = /(\w+) (\w+) icon conflict/.exec(check.check);
    if (hidden) return `${title(hidden[1])} shows no conflict in ${title(hidden[2])}`;
    for (const [pattern, words] of reasons) {
      const found = pattern.exec(check.reason ?? "");
      if (found) return words(...found.slice(1).map(title));
    }
    return `${check.check.replace(/^\w+: /, "")}: ${check.reason ?? ""}`;
  }

  function showPromises(t) {
    // The expectations are those of the scenario alone; after an act of the viewer only the invariants count.
    const isScripted = state.source === "simulated" || !state.isEdited;
    const counts = (check) => isScripted || check.check.startsWith("invariant: ");
    const failed = (state.document?.run.checks ?? []).filter((check) => check.outcome === "fail" && counts(check) && seenFrom(check) <= Math.max(t, state.t));
    const items = promises.map((promise) => {
      const check = promise.words.flatMap((word) => failed.filter((check) => check.check.includes(word)))[0] ?? null;
      return [promise.name, check, state.document !== null && state.t >= promise.from && (isScripted || !promise.needsScript)];
    });
    replace(promiseList, JSON.stringify(items), () => items.map(([name, check, isKnown]) =>
      element("li", { class: check ? "broken" : isKnown ? null : "open" }, `${check ? "✗" : isKnown ? "✓" : "…"} ${name}`)));
    const broken = items.filter(([, check]) => check);
    replace(reasonList, JSON.stringify(broken), () => broken.map(([name, check]) => element("li", {},
      element("strong", {}, name, ":"), ` ${inWords(check)}`)));
  }

  let last = performance.now();
  function tick(now) {
    const passed = now - last;
    last = now;
    if (state.run && state.isPlaying) {
      if (state.live) state.t = Math.min(length, Math.max(state.t, state.liveTime()));
      else if (state.source === "simulated" || !state.live) state.t = Math.min(length, state.t + passed * state.speed);
      if (state.t >= length && !state.live) state.isPlaying = false;
      show();
    }
    requestAnimationFrame(tick);
  }

  // A control that was clicked gives the keys back to the page; one that has the focus by the keyboard keeps its own keys.
  window.addEventListener("click", (event) => {
    const focused = document.activeElement;
    if (event.detail > 0 && focused?.matches("button, input[type=range]")) focused.blur();
  });

  window.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input[type=text], select")) return;
    const isOnSlider = target === slider;
    const index = steps.findLastIndex((step) => state.t >= step.t);
    if (event.key === " " && !(target instanceof HTMLButtonElement)) togglePlay();
    else if (event.key === "ArrowRight" && !state.live && !isOnSlider) goTo(steps[Math.min(steps.length - 1, index + 1)]);
    else if (event.key === "ArrowLeft" && !state.live && !isOnSlider) goTo(steps[Math.max(0, index - 1)]);
    else return;
    event.preventDefault();
  });

  play("current");
  requestAnimationFrame(tick);
})();
