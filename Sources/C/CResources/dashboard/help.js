// The text of the help: the keys, the language of the filter, the numbers.

import { element } from "./format.js";

const keys = [
  ["0 – 6", "link of the current proxy: off, Wi-Fi, LTE, 3G, Edge, 100 % loss, offline"],
  ["o, O", "offline: connections fail at once; outage: all packets are lost (Shift+O)"],
  ["[ ]", "previous, next proxy"],
  ["d", "drop the response of the next request"],
  ["h", "delay the next request by 10 s"],
  ["e", "respond to the next request with 503"],
  ["x", "close all connections now"],
  ["n", "next change of the timeline"],
  ["r", "record, stop recording"],
  ["R", "reset all proxies (Shift+R)"],
  ["space", "pause, continue"],
  ["w", "window of 60 s or 5 min"],
  ["c", "go to the time axis: ← → move, Shift selects, Enter opens, + − zoom"],
  ["g", "go to the requests: ↑ ↓ move, Enter opens"],
  ["/ or f", "filter"],
  ["t", "colours: system, light, dark"],
  ["Esc", "close the details, clear the selection or the filter"],
  ["?", "this help"],
];

const filters = [
  ["PUT & lost", "both; without & too"],
  ["POST | PUT", "either"],
  ["!304", "not"],
  ["/api/*", "the path; * stands for any text"],
  ["409, 4xx, >=400", "the status"],
  ["lost, open, ok, error, conflict, slow, retry, fault, tcp", "the state; slow is 1 s and more"],
  ["ms>1000, up>500, down>500, try>1", "time, bytes of the bodies, attempt"],
  ["proxy:notes, client:…, link:edge, end:commit, path:…, method:…", "contains the text"],
  ["\"two words\"", "the text as it is"],
];

const numbers = [
  ["Round trip", "what TCP measures over the modelled link, queue included (mean of the open connections)"],
  ["Queue", "bytes that wait for the link, and how long the next packet will wait"],
  ["Lost, resent", "packets that the link has lost, and what TCP has sent again: no byte is missing, it is late"],
  ["Waiting", "requests without a complete response"],
];

const table = (rows, code) => element("dl", { class: code === "kbd" ? "help-list" : "help-list wide" },
  ...rows.flatMap(([name, text]) => [element("dt", {}, element(code, {}, name)), element("dd", {}, text)]));

/** Returns the elements of the help. */
export function helpContent(on, change) {
  const box = element("input", { type: "checkbox", id: "help-keys", checked: on });
  box.addEventListener("change", () => change(box.checked));
  return [
    element("h3", {}, "Keys"), table(keys, "kbd"),
    element("p", {}, box, " ", element("label", { for: "help-keys" }, "Keys without Ctrl or Alt have an effect (except ?)")),
    element("h3", {}, "Filter"), table(filters, "code"),
    element("h3", {}, "Numbers"), table(numbers, "b"),
  ];
}
