"""The dashboard in Chromium, fed with scripted events: the stream, access, accessibility and speed."""
import time

import pytest
from playwright.sync_api import expect

from dashboard_page import Tab, check, fill, longest_task, radio
from events_server import EventsServer, now


def test_the_page_connects_again_and_shows_it(browser):
    with EventsServer() as first:
        first.add_proxy("notes")
        tab = Tab(browser, first.url)
        page = tab.open()
        first.connection("notes", 0, now())
        first.request("notes", "GET", "/before")
        expect(page.locator("#rows .row")).to_have_count(1)
        port = first.port
    expect(page.locator("#connection")).to_have_text("Reconnecting")
    expect(page.locator("#lost")).to_contain_text("No connection to the server since")
    expect(page).to_have_title("No connection – Slowlane")
    expect(page.locator("#favicon")).to_have_attribute("href", "/dashboard/icon-lost.svg")
    with EventsServer(port=port) as second:
        second.add_proxy("images")
        second.set_link("images", "edge")
        expect(page.locator("#connection")).to_have_text("Live")
        expect(page.locator("#lost")).to_be_hidden()
        expect(page.locator(".card")).to_have_count(1)
        expect(page.locator(".card")).to_contain_text("images")
        expect(page.locator("#rows .row")).to_have_count(0)
        expect(page.locator("#caption")).to_contain_text("The server has restarted")
        expect(page).to_have_title("● Edge on images – Slowlane")
        tab.close(expected="ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|Failed to load resource")


def test_a_short_interruption_loses_no_event(tab, dashboard, events):
    events.connection("notes", 0, now())
    events.request("notes", "GET", "/one")
    expect(dashboard.locator("#rows .row")).to_have_count(1)
    dashboard.context.set_offline(True)
    events.request("notes", "GET", "/two")
    dashboard.context.set_offline(False)
    events.request("notes", "GET", "/three")
    expect(dashboard.locator("#rows .row")).to_have_count(3)


def test_dropped_events_are_told(dashboard, events):
    expect(dashboard.locator("#dropped")).to_be_hidden()
    events.emit("dropped", t=now(), count=120, reason="rate", proxy="notes")
    expect(dashboard.locator("#dropped")).to_have_text("120 events dropped: more than the stream carries")


def test_read_only_disables_what_changes_something(browser):
    with EventsServer(dashboard="view") as events:
        events.add_proxy("notes")
        tab = Tab(browser, events.url)
        page = tab.open()
        fill(events)
        expect(page.locator("#read-only")).to_be_visible()
        expect(radio(page, "Edge")).to_be_disabled()
        page.get_by_role("button", name="More").click()
        expect(page.get_by_role("button", name="Delay", exact=True)).to_be_disabled()
        for key in ("4", "d", "x", "r", "R"):
            page.keyboard.press(key)
        page.locator("#rows .row").first.click()
        expect(page.locator("#details")).to_contain_text("curl")
        expect(page.locator("#details .actions")).to_have_count(0)
        assert events.calls == []
        tab.close()


def test_a_token_is_asked_for_and_sent(browser):
    with EventsServer(token="secret") as events:
        events.add_proxy("notes")
        tab = Tab(browser, events.url)
        tab.page.goto(events.url)
        tab.page.get_by_role("textbox", name="Token").fill("secret")
        tab.page.get_by_role("button", name="Connect", exact=True).click()
        expect(tab.page.locator("#connection")).to_have_text("Live")
        expect(tab.page.locator(".card")).to_have_count(1)
        tab.close(expected="401")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing_serious(browser, events, scheme, width):
    tab = Tab(browser, events.url, color_scheme=scheme, bypass_csp=True)
    page = tab.open()
    page.set_viewport_size({"width": width, "height": 900})
    fill(events)
    events.add_proxy("images")
    events.emit("proxy", **events.proxies["images"]["definition"])
    for link in ("none", "wifi", "lte", "3g", "edge", "100-loss", "offline"):
        events.set_link("notes", link)
        expect(page.locator(".card").last.locator("[aria-checked=true]")).to_have_attribute("data-name", link)
        check(page)
    page.get_by_role("button", name="More").last.click()
    page.locator("#filter").fill("(PUT")
    page.get_by_role("button", name="Drop", exact=True).last.click()
    page.locator(".faults li").first.wait_for()
    check(page)
    page.locator("#filter").fill("")
    page.locator("#rows .row").first.click()
    check(page)
    page.keyboard.press("Escape")
    page.locator("#help-open").click()
    check(page)
    page.close()


def test_a_thousand_proxies_are_found_by_name(browser, events, tab):
    for number in range(1000):
        events.add_proxy("proxy-%03d" % number, listen="127.0.0.1:%d" % (10_000 + number))
    assert longest_task(browser, tab.page, tab.open) < 500
    page = tab.page
    expect(page.locator(".card")).to_have_count(30)
    expect(page.get_by_text("30 of 1,001 proxies shown")).to_be_visible()
    page.get_by_label("Proxies by name").fill("y-77")
    expect(page.locator(".card")).to_have_count(10)
    page.locator(".card").last.get_by_role("radio", name="Edge").click()
    expect(page.locator("#banner")).to_contain_text("proxy-779: Edge")
    events.add_proxy("a-first")
    events.emit("proxy", **events.proxies["a-first"]["definition"])
    page.get_by_label("Proxies by name").fill("")
    expect(page.locator(".card").first).to_contain_text("a-first")


def test_200_requests_per_second_keep_the_page_quick(browser, dashboard, events):
    events.connection("notes", 0, now())
    number = 0

    def work():
        nonlocal number
        number = play_requests(events, number, seconds=10)
        expect(dashboard.locator("#count")).to_have_text("{:,} requests".format(number))

    assert longest_task(browser, dashboard, work) < 50
    assert dashboard.locator("#rows .row").count() < 60


def play_requests(events, number, seconds):
    """Emits the beginning and the end of 200 requests per second; returns the number of requests so far."""
    methods = ["GET", "PUT", "POST", "DELETE"]
    first, start = number, time.monotonic()
    while (elapsed := time.monotonic() - start) < seconds:
        while number < first + elapsed * 200:
            method, target = methods[number % 4], "/api/notes/n%d" % number
            identifier = events.request("notes", method, target, wait=None, receive=None, end=None)
            events.request("notes", method, target, number=identifier, status=200 if number % 7 else 409)
            number += 1
        events.summary("notes", rate={"up": number, "down": number * 10}, connections_open=1)
        time.sleep(0.01)
    return number
