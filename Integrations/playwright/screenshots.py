"""Makes the pictures of the documentation: the dashboard after a minute of traffic through real proxies, the demonstration, and the
page of a run, seen in Chromium."""
import http.client
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

from PIL import Image
from playwright.sync_api import sync_playwright

from conftest import chromium
from demo_server import DemoServer, phone, seek
from proxy_server import ProxyServer, Upstream

# What happens: seconds since the start, and the calls of the API.
PLAN = [
    (0, "PUT", "notes/link", {"profile": "wifi"}), (0, "PUT", "images/link", {"profile": "wifi"}),
    (14, "PUT", "notes/link", {"profile": "3g"}), (26, "PUT", "notes/link", {"profile": "edge"}),
    (31, "PUT", "images/link", {"profile": "lte"}), (38, "POST", "notes/faults", {"rule": "PUT /api/notes/n1 before-response reset"}),
    (44, "PUT", "notes/link", {"profile": "100-loss"}),
    (49, "PUT", "notes/link", {"profile": "edge", "reset_after_ms": 300_000}),
]
DURATION = 58
SIZES = {"narrow": (360, 1560), "": (1280, 1180)}


def client(address, end, seed, targets, pause):
    """Sends requests one after the other until a time; a connection that breaks is opened again."""
    draw = random.Random(seed)
    connection = http.client.HTTPConnection(*address, timeout=30)
    while time.monotonic() < end:
        method, target = draw.choice(targets)
        try:
            connection.request(method, target, b"x" * 182 if method in ("PUT", "POST") else None)
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            connection.close()
        time.sleep(draw.uniform(0.3, 1) * pause)
    connection.close()


def play(server, upstream):
    """Starts clients and the changes of the plan; returns the time of the start."""
    notes = server.create("notes", upstream.address)
    images = server.create("images", upstream.address)
    start = time.monotonic()
    reads = [("GET", "/api/notes?status=304&size=0"), ("GET", "/api/notes/n7?size=3000"), ("GET", "/api/notes?size=9000")]
    writes = [("PUT", "/api/notes/n1"), ("PUT", "/api/notes/n1?status=409"), ("POST", "/api/notes?status=201")]
    pictures = [("GET", "/images/%d.jpg?size=%d" % (n, 20_000 * n)) for n in range(1, 6)] + [("GET", "/images/6.jpg?status=404")]
    for number, (address, targets, pause) in enumerate([(notes, reads, 2), (notes, writes, 2.5), (images, pictures, 2), (images, pictures, 3)]):
        threading.Thread(target=client, args=(address, start + DURATION + 30, number, targets, pause), daemon=True).start()

    def change():
        for at, method, path, body in PLAN:
            time.sleep(max(0, start + at - time.monotonic()))
            server.call(method, "/slowlane/v1/proxies/" + path, body)

    threading.Thread(target=change, daemon=True).start()
    return start


def save(page, folder, name):
    path = folder / (name + ".png")
    page.screenshot(path=path)
    with Image.open(path) as image:
        image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=4, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > 100_000:
        sys.exit("%s has more than 100 kB" % path)
    print(path, path.stat().st_size, "bytes")


def save_dashboard(browser, folder):
    with Upstream() as upstream, ProxyServer() as server:
        pages = {}
        for scheme in ("light", "dark"):
            for size, (width, height) in SIZES.items():
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.goto(server.url)
                pages["-".join(filter(None, ("dashboard", scheme, size)))] = page
        # The connections that the page is to show begin after it.
        start = play(server, upstream)
        time.sleep(max(0, start + DURATION - time.monotonic()))
        for name, page in pages.items():
            save(page, folder, name)
        page = pages["dashboard-light"]
        page.locator("#filter").fill("PUT & lost")
        page.locator("#rows .row").first.click()
        page.wait_for_timeout(400)
        save(page, folder, "dashboard-details")
        for page in pages.values():
            page.close()


def save_demo(browser, folder):
    with DemoServer() as server:
        for name, scheme, width, height, client, seconds in [
            ("demo-light", "light", 1280, 760, "a correct client", 32.4), ("demo-dark", "dark", 1280, 760, "a correct client", 50.3),
            ("demo-legacy", "light", 1280, 860, "a client with defects", 60), ("demo-dark-narrow", "dark", 360, 1500, "a correct client", 32.4),
        ]:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(server.url)
            page.get_by_role("button", name=client).click()
            phone(page).get_by_text("Milk n1").wait_for()
            seek(page, seconds)
            # The animation of a changed note has ended.
            page.wait_for_timeout(1200)
            save(page, folder, name)
            page.close()


def save_report(browser, folder):
    with tempfile.TemporaryDirectory() as reports:
        command = [os.environ["SLOWLANE_PROGRAM"], "run", "edit-conflict-after-subway", "--mutant", "overwrites-on-conflict"]
        subprocess.run([*command, "--report", reports, "--quiet"], capture_output=True, check=False)
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 1280, "height": 1300}, color_scheme=scheme)
            page.goto((pathlib.Path(reports) / "report.html").as_uri() + "#t=26.7")
            page.wait_for_timeout(300)
            save(page, folder, "report-" + scheme)
            page.close()


def main(folder, part=None):
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium())
        for name, work in {"dashboard": save_dashboard, "demo": save_demo, "report": save_report}.items():
            if part in (None, name):
                work(browser, folder)
        browser.close()


main(pathlib.Path(sys.argv[1]), *sys.argv[2:3])
