"use strict";
// The state of a run at any time, from the entries of its history.
const RunHistory = (() => {
  const emptyView = () => ({ notes: new Map(), outbox: 0, screen: null, dialog: null, toast: null, controls: null });

  class Run {
    constructor(devices, writers) {
      this.devices = devices.map((device) => ({
        name: device.name, user: device.user, links: [], views: [{ t: 0, view: emptyView() }], acts: [], beliefs: [],
        stops: [], starts: [], commits: 0,
      }));
      this.writers = writers.map((writer) => ({ name: writer.name, user: writer.user, acts: [] }));
      this.exchanges = [];
      this.marks = [];
      this.phases = [];
      this.problems = [];
      this.server = null;
      this.end = 0;
      this.byNumber = new Map();
      this.byName = new Map(this.devices.map((device) => [device.name, device]));
      this.writersByName = new Map(this.writers.map((writer) => [writer.name, writer]));
    }

    // Adds an entry, not earlier than the last one.
    add(entry) {
      this.end = Math.max(this.end, entry.t);
      const device = this.byName.get(entry.actor);
      const exchange = this.byNumber.get(entry.exchange);
      switch (entry.type) {
        case "network":
          device?.links.push({ t: entry.t, link: entry.link, isUp: entry.interface });
          break;
        case "view":
          if (device) this.addView(device, entry);
          break;
        case "belief":
          device?.beliefs.push({ t: entry.t, text: entry.connectivity });
          break;
        case "stopped":
          device?.stops.push(entry.t);
          break;
        case "started":
          device?.starts.push(entry.t);
          break;
        case "commit":
          if (device) device.commits += 1;
          break;
        case "action":
          (device ?? this.writersByName.get(entry.actor))?.acts.push({ t: entry.t, text: entry.action });
          break;
        case "mark":
          this.marks.push({ t: entry.t, name: entry.mark });
          break;
        case "phase":
          this.phases.push({ t: entry.t, name: entry.phase });
          break;
        case "server":
          this.server = entry.notes;
          break;
        case "aborted":
        case "missed":
        case "step-failed":
          this.problems.push({ t: entry.t, text: entry.reason });
          break;
        case "request":
          this.addExchange(entry, device);
          break;
        default:
          if (exchange) this.change(exchange, entry);
      }
    }

    addView(device, entry) {
      const last = device.views[device.views.length - 1].view;
      const notes = new Map(last.notes);
      for (const name of entry.removed) notes.delete(name);
      for (const note of entry.changed) notes.set(note.note, note);
      const view = {
        notes, outbox: entry.outbox, screen: entry.screen, dialog: entry.dialog, toast: entry.toast,
        controls: entry.controls,
      };
      device.views.push({ t: entry.t, view });
    }

    addExchange(entry, device) {
      const exchange = {
        id: entry.exchange, actor: entry.actor, method: entry.method, note: entry.note, connection: entry.connection,
        sent: entry.t, arrived: null, responded: null, ended: null, status: null, serverStatus: null, revision: null,
        base: null, up: 0, down: 0, faults: [], isLost: false, link: device ? at(device.links, entry.t)?.link ?? null : null,
      };
      this.exchanges.push(exchange);
      this.byNumber.set(exchange.id, exchange);
    }

    change(exchange, entry) {
      switch (entry.type) {
        case "named": exchange.note = entry.note; break;
        case "contents": exchange.base = entry.base; break;
        case "sent": exchange.up = entry.bytes; break;
        case "arrived": exchange.arrived = entry.t; break;
        case "responded":
          exchange.responded = entry.t;
          exchange.serverStatus = entry.status;
          exchange.down = entry.bytes;
          exchange.revision = entry.revision;
          break;
        case "received":
          exchange.ended = entry.t;
          exchange.status = entry.status;
          break;
        case "failed":
          exchange.ended = entry.t;
          exchange.isLost = true;
          break;
        case "fault": exchange.faults.push({ t: entry.t, fault: entry.fault, point: entry.point }); break;
      }
    }
  }

  // Returns the last element with a time up to t of a list in the order of its times.
  function at(list, t) {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle].t <= t) low = middle + 1; else high = middle;
    }
    return low > 0 ? list[low - 1] : null;
  }

  // Returns the end of an exchange in words.
  function outcome(exchange) {
    if (exchange.ended === null) return "open";
    if (!exchange.isLost) return String(exchange.status);
    if (exchange.responded !== null) return `${exchange.serverStatus}, response lost`;
    return exchange.arrived !== null ? "lost at the server" : "lost";
  }

  // Returns the kind of an exchange, which has a colour: ok, conflict, error, lost, open.
  function kind(exchange) {
    if (exchange.ended === null) return "open";
    if (exchange.isLost) return "lost";
    if (exchange.status === 409 || exchange.status === 412) return "conflict";
    return exchange.status < 400 ? "ok" : "error";
  }

  // Returns the kind of a link: clear, slow, dead.
  function linkKind(link, isUp) {
    if (!isUp) return "down";
    if (/^(100-loss|offline|dns|portal|uplink-loss|downlink-loss|outage)/i.test(link)) return "dead";
    return /^(wifi|clear|none|dsl|lte)/i.test(link) ? "fast" : "slow";
  }

  // Returns a time in milliseconds as text: 3.2 s, 4 min 02.5 s.
  function time(t) {
    const seconds = t / 1000;
    if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
    const minutes = Math.floor(seconds / 60);
    return `${minutes} min ${(seconds - 60 * minutes).toFixed(1).padStart(4, "0")} s`;
  }

  return { Run, at, outcome, kind, linkKind, time };
})();
