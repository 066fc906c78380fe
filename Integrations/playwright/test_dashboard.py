"""The dashboard in Chromium, fed with scripted events (events_server.py): what is shown and done."""
import pathlib
import re

import pytest
from playwright.sync_api import expect

from dashboard_page import calls, fill, radio, sorted_rows
from events_server import FILES, now

HOSTILE = "/<img src=x onerror=window.hacked=1>\u202egpj.exe\u2066\x1b[31m\"'&lt;"


def test_the_files_are_small_and_ask_for_nothing_from_elsewhere():
    files = sorted(FILES.iterdir())
    assert sum(len(path.read_bytes()) for path in files) < 150_000
    resources = (FILES.parent / "resources.c").read_text()
    for path in files:
        text = path.read_text()
        assert '"Sources/C/CResources/dashboard/%s"' % path.name in resources
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|<script>|<style|\sstyle=", text), path
        assert not [url for url in re.findall(r"https?://[^\s\"'`$)]+", text) if url != "http://www.w3.org/2000/svg"], path


def test_a_click_switches_the_link_and_banner_title_and_icon_follow(dashboard, events):
    expect(dashboard.locator("#banner")).to_be_hidden()
    expect(dashboard).to_have_title("Slowlane")
    radio(dashboard, "Edge").click()
    expect(radio(dashboard, "Edge")).to_have_attribute("aria-checked", "true")
    expect(dashboard.locator("#banner")).to_contain_text(re.compile(r"notes: Edge, since \d\d:\d\d:\d\d"))
    expect(dashboard).to_have_title("● Edge on notes – Slowlane")
    expect(dashboard.locator("#favicon")).to_have_attribute("href", "/dashboard/icon-on.svg")
    expect(dashboard.locator(".now")).to_have_text("↓ 240 kbit/s, 400 ms · ↑ 200 kbit/s, 440 ms")
    expect(dashboard.locator("#caption")).to_contain_text("notes: Edge")

    dashboard.get_by_role("button", name="Reset all").click()
    expect(dashboard.locator("#banner")).to_be_hidden()
    expect(dashboard).to_have_title("Slowlane")
    expect(dashboard.locator("#favicon")).to_have_attribute("href", "/dashboard/icon.svg")
    assert events.calls == [("PUT", "/proxies/notes/link", {"profile": "edge"}), ("POST", "/reset", None)]


def test_each_key_switches_the_link_of_the_current_proxy(dashboard, events):
    expect(dashboard.locator(".card")).to_have_count(1)
    events.add_proxy("images")
    events.emit("proxy", **events.proxies["images"]["definition"])
    expect(dashboard.locator(".card")).to_have_count(2)
    dashboard.keyboard.press("]")
    for key in "1234560":
        dashboard.keyboard.press(key)
        calls(events, "1234560".index(key) + 1)
    links = [{"profile": name} for name in ("wifi", "lte", "3g", "edge", "100-loss", "offline")]
    assert [body for _, _, body in events.calls] == links + [None]
    assert {path for _, path, _ in events.calls} == {"/proxies/images/link"}
    assert events.calls[-1][0] == "DELETE"


def test_commands_arrive_in_the_order_of_the_keys(dashboard, events):
    keys = "40" * 20
    for key in keys:
        dashboard.keyboard.press(key)
    assert [method for method, _, _ in calls(events, len(keys), wait=20)] == ["PUT", "DELETE"] * 20


def test_keys_do_nothing_in_fields_and_can_be_turned_off(dashboard, events):
    dashboard.keyboard.press("/")
    dashboard.keyboard.type("4")
    expect(dashboard.locator("#filter")).to_have_value("4")
    dashboard.keyboard.press("Escape")
    dashboard.keyboard.press("Escape")
    dashboard.keyboard.press("?")
    dashboard.get_by_label("Keys without Ctrl or Alt").uncheck()
    dashboard.keyboard.press("Escape")
    dashboard.keyboard.press("4")
    radio(dashboard, "3G").click()
    assert calls(events, 1) == [("PUT", "/proxies/notes/link", {"profile": "3g"})]


def test_arrow_keys_move_in_the_switch_without_switching(dashboard, events):
    radio(dashboard, "Off").focus()
    dashboard.keyboard.press("ArrowRight")
    dashboard.keyboard.press("ArrowRight")
    expect(radio(dashboard, "LTE")).to_be_focused()
    assert events.calls == []
    dashboard.keyboard.press("Enter")
    expect(radio(dashboard, "LTE")).to_have_attribute("aria-checked", "true")


def test_a_link_for_a_time_counts_down(dashboard, events):
    dashboard.get_by_label("How long the next link").select_option(label="for 1 min")
    radio(dashboard, "LTE").click()
    expect(dashboard.locator("#banner")).to_contain_text(re.compile(r"resets in 0:5\d"))
    assert events.calls == [("PUT", "/proxies/notes/link", {"profile": "lte", "reset_after_ms": 60000})]


def test_an_outage_and_offline_and_the_way_back(dashboard, events):
    dashboard.get_by_role("button", name="More").click()
    dashboard.get_by_role("button", name="Outage").click()
    expect(dashboard.locator("#banner")).to_contain_text("notes: Outage")
    dashboard.get_by_role("button", name="Offline", exact=True).click()
    expect(radio(dashboard, "Offline")).to_have_attribute("aria-checked", "true")
    assert events.calls == [
        ("PUT", "/proxies/notes/outage", {"up": True, "down": True}), ("DELETE", "/proxies/notes/outage", None),
        ("PUT", "/proxies/notes/link", {"profile": "offline"}),
    ]


def test_a_refused_call_is_told_in_the_servers_words(tab, dashboard, events):
    tab.messages.clear()
    dashboard.get_by_role("button", name="More").click()
    dashboard.get_by_label("Profile of notes").select_option("edge")
    events.proxies.clear()
    radio(dashboard, "3G").click()
    expect(dashboard.locator("#problem")).to_have_text("proxy not found")
    tab.messages = [message for message in tab.messages if "404" not in message]  # Chromium reports each error response.


def test_faults_are_added_shown_and_removed(dashboard, events):
    dashboard.get_by_label("Method of the next request").select_option("PUT")
    dashboard.get_by_role("button", name="Drop", exact=True).click()
    dashboard.keyboard.press("e")
    expect(dashboard.locator(".faults li")).to_have_count(2)
    expect(dashboard.locator(".faults li").first).to_contain_text("PUT before-response reset waiting")
    fault = events.proxies["notes"]["faults"][0]
    events.emit("fault", proxy="notes", t=now(), change="fired", name=fault["name"], rule=fault["rule"], fired=1, exchange=1, point="before-response", offset=0)
    expect(dashboard.locator(".faults li").first).to_contain_text("fired 1")
    expect(dashboard.locator("#caption")).to_contain_text("fault PUT before-response reset has fired")
    dashboard.get_by_role("button", name="Remove the fault").first.click()
    expect(dashboard.locator(".faults li")).to_have_count(1)
    dashboard.keyboard.press("h")
    dashboard.keyboard.press("x")
    rules = [body["rule"] for method, path, body in calls(events, 5) if method == "POST"]
    assert rules == ["PUT before-response reset", "PUT before-request respond 503", "PUT before-request-end delay 10s"]
    assert events.calls[-1] == ("DELETE", "/proxies/notes/connections", None)


def test_intercepted_requests_have_a_lock_and_hidden_ones_a_hint(dashboard, events):
    hint = dashboard.locator(".hint")
    events.connection("notes", 0, now(), not_http="TLS", server_name="hidden.test", intercepted=False)
    expect(dashboard.locator("#rows .row")).to_have_count(1)
    # Without a fault nothing is missed.
    expect(hint).to_be_hidden()
    dashboard.keyboard.press("e")
    expect(hint).to_contain_text("cannot see inside the TLS of hidden.test")
    expect(hint).to_contain_text("--intercept 'hidden.test'")
    opened = now()
    events.connection("notes", 1, opened, not_http="TLS", server_name="api.test", intercepted=False)
    expect(hint).to_contain_text("--intercept 'hidden.test,api.test'")
    events.connection("notes", 1, opened, server_name="api.test", intercepted=True)
    events.request("notes", "POST", "/orders", connection=1)
    expect(hint).not_to_contain_text("api.test")
    expect(dashboard.locator("#rows .row")).to_have_count(3)
    rows = {row[0] for row in sorted_rows(dashboard)}
    assert rows == {"TCP TLS", "POST \U0001f512 /orders", "TLS \U0001f512 api.test"}
    dashboard.locator("#rows .row", has_text="/orders").click()
    expect(dashboard.locator("#details")).to_contain_text("\U0001f512 api.test, intercepted")
    events.emit(
        "proxy", proxy="notes", t=now(), change="changed", listen="127.0.0.1:8001", upstream="127.0.0.1:8000", enabled=True, seed=42, toxics=[],
        intercept=["*.test"])
    expect(dashboard.locator(".address")).to_contain_text("\U0001f512 *.test")
    expect(hint).to_be_hidden()


def test_requests_are_listed_newest_first_with_their_end(dashboard, events):
    fill(events)
    expect(dashboard.locator("#rows .row")).to_have_count(4)
    assert sorted_rows(dashboard) == [
        ["POST /api/notes", "open"], ["PUT /api/notes/n1", "lost after commit"], ["PUT /api/notes/n1", "409"], ["GET /api/notes", "304"]]
    expect(dashboard.locator("#count")).to_have_text("4 requests")


@pytest.mark.parametrize("text, number", [
    ("PUT & lost", 1), ("PUT | POST", 3), ("!PUT", 2), ("/api/notes/*", 2), ("409", 1), (">=400", 1), ("ms>5000", 1), ("try>1 lost", 1),
    ("open", 1), ("end:commit", 1), ("proxy:notes (GET | up>100)", 3), ('"n1"', 2), ("conflict", 1),
])
def test_a_filter_selects_requests(dashboard, events, text, number):
    fill(events)
    dashboard.locator("#filter").fill(text)
    expect(dashboard.locator("#count")).to_have_text("%d of 4 requests" % number)
    expect(dashboard.locator("#rows .row")).to_have_count(number)


def test_a_wrong_filter_says_why_and_keeps_the_last_one(dashboard, events):
    fill(events)
    dashboard.locator("#filter").fill("PUT")
    expect(dashboard.locator("#rows .row")).to_have_count(2)
    for text, reason in [("(PUT", '")" is missing'), ("size>3", 'unknown key "size"'), ("ms>soon", "ms needs a number"), ("PUT &", 'missing after "&"')]:
        dashboard.locator("#filter").fill(text)
        expect(dashboard.locator("#filter-problem")).to_contain_text(reason)
        expect(dashboard.locator("#filter")).to_have_attribute("aria-invalid", "true")
        expect(dashboard.locator("#rows .row")).to_have_count(2)


def test_a_request_that_ends_leaves_the_filter_for_open_ones(dashboard, events):
    events.connection("notes", 0, now())
    number = events.request("notes", "PUT", "/slow", wait=None, receive=None, end=None)
    dashboard.locator("#filter").fill("open")
    expect(dashboard.locator("#rows .row")).to_have_count(1)
    events.request("notes", "PUT", "/slow", number=number)
    expect(dashboard.locator("#rows .row")).to_have_count(0)
    expect(dashboard.locator("#empty")).to_have_text("No request matches.")


def drag(page, start, end):
    box = page.locator("#chart").bounding_box()
    gutter = 104
    at = lambda fraction: box["x"] + gutter + fraction * (box["width"] - gutter)
    page.mouse.move(at(start), box["y"] + 60)
    page.mouse.down()
    page.mouse.move(at((start + end) / 2), box["y"] + 60)
    page.mouse.move(at(end), box["y"] + 60)
    page.mouse.up()


def test_a_brushed_range_selects_requests_and_pauses(dashboard, events):
    fill(events)
    expect(dashboard.locator("#rows .row")).to_have_count(4)
    drag(dashboard, 0.60, 0.74)  # 24 s to 15.6 s before now
    expect(dashboard.locator("#brush-text")).to_contain_text(re.compile(r"8\.[34] s"))
    expect(dashboard.locator("#count")).to_have_text("2 of 4 requests")
    expect(dashboard.locator("#pause")).to_have_text(re.compile("Live"))
    dashboard.get_by_role("button", name="Clear the selection").click()
    expect(dashboard.locator("#count")).to_have_text("4 requests")


def test_the_keyboard_brushes_and_opens_requests(dashboard, events):
    fill(events)
    expect(dashboard.locator("#rows .row")).to_have_count(4)
    dashboard.keyboard.press("c")
    expect(dashboard.locator("#chart")).to_be_focused()
    for _ in range(4):
        dashboard.keyboard.press("Shift+ArrowLeft")
    expect(dashboard.locator("#brush-text")).to_contain_text("4.0 s")
    expect(dashboard.locator("#count")).to_have_text("1 of 4 requests")
    expect(dashboard.locator("#caption")).to_contain_text("Selected")
    dashboard.keyboard.press("Escape")
    for _ in range(6):
        dashboard.keyboard.press("ArrowLeft")
    dashboard.keyboard.press("Enter")
    expect(dashboard.locator("#details-title")).to_have_text("PUT /api/notes/n1")
    expect(dashboard.locator(".sentence")).to_contain_text("the server has executed the request")
    dashboard.keyboard.press("Escape")
    expect(dashboard.locator("#details")).to_be_hidden()
    expect(dashboard.locator("#chart")).to_be_focused()


def test_pause_keeps_the_window_and_the_table_goes_on(dashboard, events):
    dashboard.keyboard.press("Space")
    expect(dashboard.locator("#pause")).to_have_attribute("aria-pressed", "true")
    dashboard.wait_for_timeout(200)
    before = dashboard.evaluate("document.querySelector('canvas').toDataURL()")
    dashboard.wait_for_timeout(1200)
    assert dashboard.evaluate("document.querySelector('canvas').toDataURL()") == before
    fill(events)
    expect(dashboard.locator("#rows .row")).to_have_count(4)
    dashboard.keyboard.press("Space")
    expect(dashboard.locator("#pause")).to_have_attribute("aria-pressed", "false")
    dashboard.wait_for_timeout(300)
    assert dashboard.evaluate("document.querySelector('canvas').toDataURL()") != before
    dashboard.get_by_role("button", name="5 min").click()
    expect(dashboard.get_by_role("button", name="5 min")).to_have_attribute("aria-pressed", "true")


def test_the_table_is_used_with_the_keyboard(dashboard, events):
    fill(events)
    expect(dashboard.locator("#rows .row")).to_have_count(4)
    dashboard.keyboard.press("g")
    dashboard.keyboard.press("ArrowDown")
    dashboard.keyboard.press("ArrowDown")
    expect(dashboard.locator("#rows [aria-selected=true]")).to_contain_text("lost after commit")
    dashboard.keyboard.press("Enter")
    dashboard.get_by_role("button", name="Drop the response").click()
    dashboard.get_by_role("button", name="Delay 10 s").click()
    dashboard.get_by_role("button", name="Respond 503 once").click()
    rules = [body["rule"] for _, _, body in calls(events, 3)]
    assert rules == ["PUT /api/notes/n1 before-response reset", "PUT /api/notes/n1 before-request-end delay 10s", "PUT /api/notes/n1 before-request respond 503"]
    expect(dashboard.get_by_role("button", name="Disconnect now").last).to_be_disabled()


def test_an_open_request_can_be_cut(dashboard, events):
    events.connection("notes", 5, now())
    events.request("notes", "PUT", "/slow", wait=None, receive=None, end=None, connection=5)
    dashboard.locator("#rows .row").click()
    dashboard.locator("#details").get_by_role("button", name="Disconnect now").click()
    assert calls(events, 1) == [("DELETE", "/proxies/notes/connections/5", None)]


def test_a_request_is_copied_as_curl_swift_and_pytest(dashboard, events):
    dashboard.context.grant_permissions(["clipboard-read", "clipboard-write"])
    events.connection("notes", 0, now())
    events.request("notes", "PUT", "/a'b$(reboot)?q=\\(x)", status=409, up=182, link="edge")
    dashboard.locator("#rows .row").click()
    dashboard.get_by_role("button", name="Copy", exact=True).click()
    expect(dashboard.locator("#caption")).to_contain_text("Copied as curl")
    copied = lambda: dashboard.evaluate("navigator.clipboard.readText()")
    assert copied().splitlines()[-1] == "curl -i -X PUT --data-binary @body 'http://127.0.0.1:8001/a'\\''b$(reboot)?q=%5C(x)'"
    dashboard.get_by_role("tab", name="Swift").click()
    expect(dashboard.locator("#snippet")).to_contain_text('@Test(.network("edge", upstream: "127.0.0.1:8000"))')
    dashboard.keyboard.press("ArrowRight")
    expect(dashboard.get_by_role("tab", name="pytest")).to_be_focused()
    dashboard.get_by_role("button", name="Copy", exact=True).click()
    expect(dashboard.locator("#caption")).to_contain_text("Copied as pytest")
    compile(copied(), "copied", "exec")


def test_hostile_texts_are_text(dashboard, events):
    events.connection("notes", 0, now(), client="<b>10.0.0.1</b>:80")
    long = "/" + "a" * 8000 + "<script>window.hacked=1</script>"
    events.request("notes", "GET", HOSTILE, fault={"name": "<i>x</i>", "point": "before-response"})
    events.request("notes", "<svg/onload=window.hacked=1>", long, status=200)
    events.connection("notes", 1, now(), not_http="<img src=x onerror=window.hacked=1>")
    events.emit("fault", proxy="notes", t=now(), change="fired", name="<u>f</u>", rule="any before-request respond 503 body <img src=x>\u202e", fired=1, exchange=1, point="before-request", offset=0)
    name = "<img src=x onerror=window.hacked=1>\u202e"
    events.add_proxy(name)
    events.emit("proxy", **events.proxies[name]["definition"])
    events.set_link(name, "<b>edge</b>")
    expect(dashboard.locator("#rows .row")).to_have_count(3)
    expect(dashboard.locator("#rows")).to_contain_text("/<img src=x onerror=window.hacked=1>\\u202egpj.exe\\u2066\\u001b[31m\"'&lt;")
    expect(dashboard.locator("#banner")).to_contain_text("<img src=x onerror=window.hacked=1>\\u202e: <b>edge</b>")
    for row in range(3):
        dashboard.locator("#rows .row").nth(row).click()
        expect(dashboard.locator("#details")).to_be_visible()
        for tab in dashboard.locator("#details [role=tab]").all():
            tab.click()
    assert dashboard.evaluate("window.hacked") is None
    assert dashboard.evaluate("document.querySelectorAll('body img').length") == 1
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", dashboard.locator("body").inner_text() + dashboard.title())
    assert dashboard.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_recording_is_shown_and_saved(dashboard, events):
    dashboard.get_by_role("button", name="Record").click()
    expect(dashboard.locator("#record")).to_have_text("Stop (2 changes)")
    dashboard.keyboard.press("r")
    expect(dashboard.locator("#recording-yaml")).to_have_text("scenario: 1\nname: recorded\n")
    with dashboard.expect_download() as download:
        dashboard.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "recorded.yaml"
    assert pathlib.Path(download.value.path()).read_text() == "scenario: 1\nname: recorded\n"


def test_a_timeline_is_loaded_and_stepped(dashboard, events):
    dashboard.get_by_role("button", name="More").click()
    dashboard.get_by_label("Timeline of notes").fill("subway")
    dashboard.get_by_role("button", name="Load").click()
    expect(dashboard.locator(".timeline")).to_contain_text("Timeline subway")
    state = {"timeline": "subway", "state": "running", "position_ms": 12300.5, "round_ms": 12300.5, "link": "3g", "ramping": False, "next": {"link": "100-loss", "in_ms": 7700.2}}
    events.summary("notes", timeline=state)
    expect(dashboard.locator(".timeline")).to_contain_text("Timeline subway at 0:13: 3G, then 100 % loss in 8.0 s")
    expect(dashboard.locator("#banner")).to_contain_text("notes: subway (3G)")
    dashboard.get_by_role("button", name="Step").click()
    dashboard.locator(".timeline").get_by_role("button", name="Pause").click()
    assert calls(events, 3) == [
        ("PUT", "/proxies/notes/link", {"timeline": "subway"}), ("PATCH", "/proxies/notes/timeline", {"position_ms": 20001}),
        ("PATCH", "/proxies/notes/timeline", {"paused": True})]
