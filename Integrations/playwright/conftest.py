"""The fixtures: the app, a browser for the run, and for each test a page behind the network of the test."""
import os
import re
import shutil
import threading

import pytest
from playwright.sync_api import expect, sync_playwright

from dashboard_page import Tab
from events_server import EventsServer
from notes_app import NotesApp

# A stalled connection continues with its next TCP retransmission, seconds after the end of an outage.
expect.set_options(timeout=30_000)


def pytest_addoption(parser):
    parser.addoption("--screenshots", metavar="FOLDER", help="save a screenshot of each page at the end of its test")


@pytest.fixture
def app():
    with NotesApp() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.may_respond.set()
        server.shutdown()


@pytest.fixture
def slowlane_upstream(app):
    return app.address


def chromium():
    """Returns the path of the browser, or None."""
    return os.environ.get("SLOWLANE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def browser():
    program = chromium()
    if not program:
        pytest.fail("cannot find chromium; install it (Debian: apt-get install chromium) or set SLOWLANE_CHROMIUM", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


@pytest.fixture
def page(request, browser, network):
    page = browser.new_page(base_url=network.url)
    yield page
    folder = request.config.getoption("--screenshots")
    if folder:
        page.screenshot(path=os.path.join(folder, re.sub(r"\W", "-", request.node.name) + ".png"))
    page.close()


@pytest.fixture
def events():
    """A server of scripted events with one proxy."""
    with EventsServer() as server:
        server.add_proxy("notes")
        yield server


@pytest.fixture
def tab(browser, events):
    """A tab of its dashboard; the test fails if the tab reports an error or asks another origin for anything."""
    tab = Tab(browser, events.url)
    yield tab
    tab.close()


@pytest.fixture
def dashboard(tab):
    """The page of the dashboard, live."""
    return tab.open()
