"""A tab with the dashboard, and what its tests share."""
import json
import re
import time

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from events_server import now


class Tab:
    """A page with what must not happen: messages on the console, errors, and requests to another origin."""

    def __init__(self, browser, url, **options):
        self.page = browser.new_page(viewport={"width": 1280, "height": 900}, **options)
        self.origin = url
        self.messages, self.foreign = [], []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.record(request.url))

    def record(self, url):
        if not url.startswith((self.origin + "/", "blob:" + self.origin, "data:")):
            self.foreign.append(url)

    def open(self, path="/"):
        self.page.goto(self.origin + path)
        expect(self.page.locator("#connection")).to_have_text("Live")
        expect(self.page.locator("#version")).not_to_be_empty()
        return self.page

    def close(self, expected=None):
        self.page.close()
        assert [message for message in self.messages if not (expected and re.search(expected, message))] == []
        assert self.foreign == []


def radio(page, name):
    return page.get_by_role("radio", name=name, exact=True)


def calls(events, number, wait=5):
    deadline = time.monotonic() + wait
    while len(events.calls) < number and time.monotonic() < deadline:
        time.sleep(0.01)
    return events.calls


def fill(events):
    start = now() - 20_000
    events.connection("notes", 0, start)
    events.request("notes", "GET", "/api/notes", start=start + 1000, status=304)
    events.request("notes", "PUT", "/api/notes/n1", start=start + 3000, status=409, up=182)
    events.request("notes", "PUT", "/api/notes/n1", start=start + 6000, receive=9000, end="lost-after-commit", up=182, attempt=2)
    events.request("notes", "POST", "/api/notes", start=start + 17_000, wait=None, receive=None, end=None, up=40)
    return start


def sorted_rows(page):
    return page.evaluate("""() => [...document.querySelectorAll("#rows .row")].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
        .map((row) => [row.querySelector(".c-what").textContent, row.querySelector(".c-end").textContent])""")


def check(page):
    found = [
        "%s: %s" % (violation["id"], [node["html"][:200] for node in violation["nodes"]])
        for violation in Axe().run(page).response["violations"] if violation["impact"] in ("serious", "critical")
    ]
    assert found == [], "\n".join(found)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than its window"


def longest_task(browser, page, work):
    """Returns the CPU time in ms of the longest task of the page's main thread while work is done."""
    browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"])
    work()
    events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {(one["pid"], one["tid"]) for one in events if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"}
    tasks = [one["tdur"] / 1000 for one in events if "tdur" in one and one["name"].endswith("RunTask") and (one["pid"], one["tid"]) in threads]
    assert len(tasks) > 100
    return max(tasks)
