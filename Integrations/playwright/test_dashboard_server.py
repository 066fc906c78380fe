"""The dashboard of `slowlane server` in Chromium: what is seen and done on the page is what happens on the wire."""
import http.client
import os
import re
import subprocess
import threading
import time
import urllib.request

import pytest
from playwright.sync_api import expect

from dashboard_page import Tab, longest_task, radio
from proxy_server import LOCAL, ProxyServer, Upstream, send, send_bytes


@pytest.fixture
def upstream():
    with Upstream() as server:
        yield server


@pytest.fixture
def server():
    with ProxyServer() as server:
        yield server


@pytest.fixture
def address(server, upstream):
    return server.create("notes", upstream.address)


@pytest.fixture
def tab(browser, server, address):
    tab = Tab(browser, server.url)
    yield tab
    tab.close()


@pytest.fixture
def dashboard(tab):
    page = tab.open()
    expect(page.locator(".card")).to_have_count(1)
    return page


def seconds(work):
    start = time.monotonic()
    work()
    return time.monotonic() - start


def test_the_switch_applies_on_the_wire_and_reset_ends_it(dashboard, server, address):
    expect(dashboard.locator("#banner")).to_be_hidden()
    radio(dashboard, "Edge").click()
    expect(dashboard.locator("#banner")).to_contain_text("notes: Edge, since")
    expect(dashboard).to_have_title("● Edge on notes – Slowlane")
    assert server.call("GET", "/slowlane/v1/proxies/notes/link")["profile"] == "edge"
    # A handshake and a request with its response: two round trips of 840 ms.
    assert seconds(lambda: send(address)) >= 1.68
    expect(dashboard.locator("#rows .row")).to_have_count(1)
    expect(dashboard.locator("#rows .c-end")).to_have_text("200")
    dashboard.keyboard.press("Shift+R")
    expect(dashboard.locator("#banner")).to_be_hidden()
    assert seconds(lambda: send(address)) < 1


def test_each_key_sets_its_profile(dashboard, server):
    for key, profile in [("1", "wifi"), ("2", "lte"), ("3", "3g"), ("4", "edge"), ("5", "100-loss"), ("6", "offline"), ("0", None)]:
        dashboard.keyboard.press(key)
        expect(dashboard.locator("[role=radio][aria-checked=true] kbd")).to_have_text(key)
        assert server.call("GET", "/slowlane/v1/proxies/notes/link")["profile"] == profile


def test_a_link_for_a_time_ends_by_itself(dashboard, server):
    server.call("PUT", "/slowlane/v1/proxies/notes/link", {"profile": "3g", "reset_after_ms": 2500})
    expect(dashboard.locator("#banner")).to_contain_text(re.compile(r"notes: 3G, .* resets in 0:0[123]"))
    expect(dashboard.locator("#banner")).to_be_hidden()
    expect(radio(dashboard, "Off")).to_have_attribute("aria-checked", "true")


def test_an_outage_and_offline(dashboard, address):
    dashboard.get_by_role("button", name="More").click()
    dashboard.get_by_role("button", name="Outage").click()
    expect(dashboard.locator("#banner")).to_contain_text("notes: Outage")
    assert send(address, timeout=1) == "TimeoutError"
    dashboard.get_by_role("button", name="Offline", exact=True).click()
    expect(dashboard.locator("#banner")).to_contain_text("notes: Offline, since")
    assert send(address) in ("ConnectionRefusedError", "ConnectionResetError")
    dashboard.keyboard.press("0")
    expect(dashboard.locator("#banner")).to_be_hidden()
    assert send(address) == 200


def test_the_next_request_is_dropped_held_and_answered(dashboard, address, upstream):
    dashboard.get_by_label("Method of the next request").select_option("PUT")
    dashboard.get_by_role("button", name="Drop", exact=True).click()
    expect(dashboard.locator(".faults li")).to_have_count(1)
    assert send(address, "GET", "/api/notes") == 200
    assert send(address, "PUT", "/api/notes/n1", b"milk") in ("ConnectionResetError", "RemoteDisconnected")
    assert ("PUT", "/api/notes/n1") in upstream.received
    expect(dashboard.locator(".faults li")).to_contain_text("fired 1")
    dashboard.locator("#filter").fill("PUT & lost")
    expect(dashboard.locator("#rows .row")).to_have_count(1)
    expect(dashboard.locator("#rows .c-end")).to_have_text("lost after commit")

    dashboard.locator("#rows .row").click()
    expect(dashboard.locator(".sentence")).to_contain_text("A retry must be idempotent. The fault 'fault_1' fired at before-response.")
    before = len(upstream.received)
    dashboard.get_by_role("button", name="Respond 503 once").click()
    expect(dashboard.locator(".faults li")).to_have_count(2)
    assert send(address, "PUT", "/api/notes/n1", b"milk") == 503
    assert len(upstream.received) == before
    assert send(address, "PUT", "/api/notes/n1", b"milk") == 200
    dashboard.locator("#filter").fill("PUT 503 fault")
    expect(dashboard.locator("#rows .c-end")).to_have_text("503 by a fault")
    dashboard.get_by_role("button", name="Close the details").click()

    dashboard.get_by_role("button", name="Delay", exact=True).click()
    expect(dashboard.locator(".faults li")).to_have_count(3)
    results = []
    sender = threading.Thread(target=lambda: results.append(send(address, "PUT", "/api/notes/n9", b"milk")))
    sender.start()
    dashboard.locator("#filter").fill("open")
    expect(dashboard.locator("#rows .row")).to_have_count(1)
    expect(dashboard.locator(".stats")).to_contain_text("1 waiting")
    dashboard.locator("#rows .row").click()
    dashboard.locator("#details").get_by_role("button", name="Disconnect now").click()
    sender.join(5)
    assert results in (["ConnectionResetError"], ["RemoteDisconnected"])
    expect(dashboard.locator("#rows .row")).to_have_count(0)


def test_hostile_requests_are_text(dashboard, address):
    path = "/<img/src=x/onerror=window.hacked=1>\u202egpj.exe".encode() + b"\xff\xfe" + b"\x01"
    head = b"Host: x\r\nX-Evil: <script>window.hacked=1</script>\r\nConnection: close\r\n\r\n"
    for line in (b"GET " + path, b"<B>BOLD</B> /", b"GET /" + b"a" * 8000 + b"?<script>window.hacked=1</script>"):
        try:
            send_bytes(address, line + b" HTTP/1.1\r\n" + head)
        except OSError:
            pass
    send_bytes(address, b"GET /last HTTP/1.1\r\n" + head)
    expect(dashboard.locator("#rows")).to_contain_text("/last")
    for row in dashboard.locator("#rows .row").all():
        row.click()
        expect(dashboard.locator("#details")).to_be_visible()
    assert dashboard.evaluate("window.hacked") is None
    assert dashboard.evaluate("document.querySelectorAll('body img').length") == 1
    assert not re.search("[\u202a-\u202e\x01]", dashboard.locator("body").inner_text())
    assert dashboard.locator("#rows .row").count() >= 3
    assert dashboard.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_recording_lints_and_runs(dashboard, server, tmp_path):
    dashboard.keyboard.press("r")
    expect(dashboard.locator("#record")).to_have_attribute("aria-pressed", "true")
    for key in "4503":
        dashboard.keyboard.press(key)
        dashboard.wait_for_timeout(700)
    dashboard.keyboard.press("r")
    with dashboard.expect_download() as download:
        dashboard.get_by_role("button", name="Download").click()
    path = tmp_path / "recorded.yaml"
    download.value.save_as(path)
    text = path.read_text()
    assert re.search("edge.*100-loss.*3g", text, re.DOTALL)
    program = os.environ["SLOWLANE_PROGRAM"]
    lint = subprocess.run([program, "lint", str(path)], capture_output=True, text=True, check=False)
    assert lint.returncode == 0, lint.stdout + lint.stderr + text
    run = subprocess.run([program, "run", str(path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr + text


def test_a_timeline_is_loaded_stepped_and_paused(dashboard, server):
    dashboard.get_by_role("button", name="More").click()
    dashboard.get_by_label("Timeline of notes").fill("0s: 3g, 1h: edge, 2h: wifi")
    dashboard.get_by_role("button", name="Load").click()
    expect(dashboard.locator(".timeline")).to_contain_text(": 3G, then Edge in")
    dashboard.get_by_role("button", name="Step").click()
    expect(dashboard.locator(".timeline")).to_contain_text(": Edge, then Wi-Fi in")
    dashboard.locator(".timeline").get_by_role("button", name="Pause").click()
    expect(dashboard.locator(".timeline").get_by_role("button", name="Continue")).to_be_visible()
    assert server.call("GET", "/slowlane/v1/proxies/notes/timeline")["state"] == "paused"


def test_the_page_survives_a_restart_of_the_server(browser, upstream):
    first = ProxyServer()
    address = first.create("notes", upstream.address, link={"profile": "3g"})
    tab = Tab(browser, first.url)
    page = tab.open()
    send(address, "GET", "/before")
    expect(page.locator("#rows .row")).to_have_count(1)
    first.stop()
    expect(page.locator("#connection")).to_have_text("Reconnecting")
    expect(page).to_have_title("No connection – Slowlane")
    with ProxyServer(port=first.port) as second:
        address = second.create("images", upstream.address)
        expect(page.locator("#connection")).to_have_text("Live")
        expect(page.locator(".card")).to_have_count(1)
        expect(page.locator(".card")).to_contain_text("images")
        expect(page.locator("#rows .row")).to_have_count(0)
        expect(page).to_have_title("Slowlane")
        send(address, "GET", "/after")
        expect(page.locator("#rows")).to_contain_text("/after")
        tab.close(expected="ERR_|Failed to load resource")


def test_read_only_is_kept_by_the_server(browser, upstream):
    with ProxyServer(options=["--dashboard", "view"]) as server:
        server.create("notes", upstream.address)
        tab = Tab(browser, server.url)
        page = tab.open()
        expect(page.locator("#read-only")).to_be_visible()
        expect(radio(page, "Edge")).to_be_disabled()
        status = page.evaluate("""() => fetch("/slowlane/v1/proxies/notes/link",
            { method: "PUT", body: '{"profile":"edge"}', headers: { "X-Slowlane-Dashboard": "1" } }).then((response) => response.status)""")
        assert status == 403
        assert server.call("GET", "/slowlane/v1/proxies/notes/link")["profile"] is None
        tab.close(expected="403")


def test_the_page_is_served_with_a_strict_policy(server):
    request = urllib.request.Request(server.url + "/", headers={"Accept": "text/html"})
    with LOCAL.open(request) as response:
        policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


def test_200_requests_per_second_through_the_proxy_keep_the_page_quick(browser, dashboard, address):
    sent = 0

    def work():
        nonlocal sent
        sent = send_many(address, seconds=10)
        expect(dashboard.locator("#count")).to_have_text("{:,} requests".format(sent))

    assert longest_task(browser, dashboard, work) < 50
    assert sent > 1000
    expect(dashboard.locator("#dropped")).to_be_hidden()


def send_many(address, seconds, workers=4, rate=200):
    """Sends requests over kept connections at a rate; returns their number."""
    counts = [0] * workers

    def work(index):
        connection = http.client.HTTPConnection(*address, timeout=20)
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < seconds:
            if counts[index] < elapsed * rate / workers:
                connection.request("GET", "/api/notes/%d-%d" % (index, counts[index]))
                connection.getresponse().read()
                counts[index] += 1
            else:
                time.sleep(0.002)
        connection.close()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)
