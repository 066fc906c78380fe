"""The modules of the dashboard that need no document, run in Chromium with random input."""
import ast
import json
import random
import subprocess
import urllib.parse

import pytest
from playwright.sync_api import expect

from events_server import now

CHARACTERS = "/abz09?=&%.*'\"`$(){}[]<>\\|;!#~^ \t\n\r\0\x1b\u00e9\u202e\u2028\U0001f600"


def hostile(draw):
    return "/" + "".join(draw.choice(CHARACTERS) for _ in range(draw.randrange(1, 40)))


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_has_the_same_events_however_it_is_split(dashboard, seed):
    draw = random.Random(seed)
    expected, text = [], ""
    for number in range(30):
        data = json.dumps({"t": number, "target": hostile(draw)}, ensure_ascii=draw.random() < 0.5)
        data = data.replace("\u2028", "\\u2028")
        end = draw.choice(["\n", "\r\n"])
        text += draw.choice(["", ": keep-alive" + end + end]) + end.join(["id: %d" % number, "event: exchange", "data: " + data, "", ""])
        expected.append(["exchange", data, str(number)])
    pieces, at = [], 0
    while at < len(text):
        size = draw.randrange(1, 80)
        pieces.append(text[at:at + size])
        at += size
    found = dashboard.evaluate("""async (pieces) => {
        const { EventParser } = await import("/dashboard/stream.js");
        const events = [];
        const parser = new EventParser((...event) => events.push(event));
        for (const piece of pieces) parser.push(piece);
        return events;
    }""", pieces)
    assert found == expected


@pytest.mark.parametrize("seed", range(5))
def test_copied_commands_are_literal(dashboard, seed):
    """A shell gets one word for the URL, and Python one string, whatever a client has sent."""
    draw = random.Random(seed)
    targets = [hostile(draw) for _ in range(40)]
    methods = [draw.choice(["GET", "PUT", "$(id)", "`id`", "A;B"]) for _ in targets]
    snippets = dashboard.evaluate("""async ([targets, methods]) => {
        const { curl, pytest, swiftTest } = await import("/dashboard/snippets.js");
        const proxy = { listen: "0.0.0.0:8001", upstream: "127.0.0.1:8000" };
        return targets.map((target, index) => {
            const x = { method: methods[index], target, status: 200, outcome: index % 2 ? "lost" : "ok", link: "edge", requestBytes: 3 };
            return [curl(x, proxy), pytest(x, proxy), swiftTest(x, proxy)];
        });
    }""", [targets, methods])
    for target, (shell, python, swift) in zip(targets, snippets):
        words = subprocess.run(
            ["sh", "-c", "curl() { for word; do printf '%s\\0' \"$word\"; done; }\n" + shell], capture_output=True, check=True).stdout
        url = words.decode().split("\0")[-2]
        assert url.startswith("http://127.0.0.1:8001/")
        assert b"uid=" not in words
        assert not set(url) & set("[]{}#")
        calls = [node for node in ast.walk(ast.parse(python)) if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "Request"]
        text = calls[0].args[0].right.value
        assert url == "http://127.0.0.1:8001" + text
        path = urllib.parse.unquote(text)
        assert path.split("?")[0].replace("\ufffd", "") == urllib.parse.unquote(target).split("?")[0].replace("\ufffd", "")
        assert "\\(" not in swift and all(" " <= character <= "~" or character == "\n" for character in swift)


def test_the_page_keeps_a_bounded_number_of_requests_and_tells_it(dashboard):
    counts = dashboard.evaluate("""async () => {
        const { Model } = await import("/dashboard/model.js");
        const model = new Model(2000);
        model.apply("hello", { started: 1, t: 1, dashboard: "on", proxies: [] });
        for (let id = 0; id < 10000; id += 1) {
            model.apply("exchange", { proxy: "notes", t: id, id, method: "GET", target: "/", times: { started: id, ended: id + 1 }, end: "completed", status: 200 });
        }
        return [model.exchanges.length, model.byID.size, model.forgotten, model.exchanges.at(-1).id];
    }""")
    assert counts[0] <= 3000
    assert counts[0] == counts[1]
    assert counts[0] + counts[2] == 10_000
    assert counts[3] == 9999


def test_after_missed_events_open_requests_do_not_grow_for_ever(dashboard, events):
    events.connection("notes", 0, now())
    events.request("notes", "GET", "/lost-sight-of", wait=None, receive=None, end=None)
    expect(dashboard.locator("#rows .c-end")).to_have_text("open")
    events.emit("dropped", t=now(), count=7, reason="reader", proxy=None)
    events.emit("hello", **events.hello())
    expect(dashboard.locator("#rows .c-end")).to_have_text("end not seen")
    expect(dashboard.locator("#dropped")).to_have_text("7 events dropped: the page was too slow or away")


def test_a_forward_proxy_has_a_lane_for_each_host(dashboard):
    lanes, command, test = dashboard.evaluate("""async () => {
        const { Model } = await import("/dashboard/model.js");
        const { curl, pytest } = await import("/dashboard/snippets.js");
        const model = new Model();
        model.apply("hello", { started: 1, t: 1, dashboard: "on", proxies: [] });
        model.apply("proxy", { proxy: "phone", t: 1, change: "created", listen: "127.0.0.1:9000", upstream: "any server", toxics: [] });
        for (let id = 0; id < 20; id += 1) {
            const number = id % 10;
            const destination = `host${number}.test:80`;
            model.apply("connection", { proxy: "phone", t: id, number, opened: id, state: "open", client: "10.0.0.7:5000", destination });
            model.apply("exchange", {
                proxy: "phone", t: id, id, connection: number, method: "GET", target: "/a", times: { started: id, ended: id + 1 },
                end: "completed", status: 200,
            });
        }
        const phone = model.proxies.get("phone");
        const x = model.exchanges[0];
        return [phone.groups.map((group) => group.host ?? group.rest), curl(x, phone), pytest(x, phone)];
    }""")
    assert lanes == ["host%d.test:80" % number for number in range(7)] + ["more hosts"]
    assert command == "curl -i -x http://127.0.0.1:9000 http://host0.test:80/a"
    assert '@pytest.mark.network(upstream="host0.test:80")' in test
