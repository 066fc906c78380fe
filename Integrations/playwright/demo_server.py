"""`slowlane demo` on a free port, and a page of it."""
import os
import re
import signal
import subprocess
import threading
import time

from playwright.sync_api import expect

STEPS = ["As usual", "The tunnel", "Both edit", "The conflict", "The decision", "A lost response"]


class DemoServer:
    """The program; its address is known when it accepts connections."""

    def __init__(self):
        self.started = time.monotonic()
        self.process = subprocess.Popen([os.environ["SLOWLANE_PROGRAM"], "demo", "--port", "0"], stdout=subprocess.PIPE)
        self.url = re.search(r"http://\S+?:\d+", self.process.stdout.readline().decode()).group()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        # A run that takes place ends with its reader.
        timer = threading.Timer(20, self.process.kill)
        timer.start()
        self.process.wait()
        timer.cancel()
        self.process.stdout.close()


def watch(page, origin):
    """Returns a list to which everything is added that must not happen: messages, errors, requests to another origin."""
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith((origin, "data:")) else problems.append(request.url))
    return problems


def phone(page, title="Ada's phone"):
    return page.get_by_role("region", name=title)


def seek(page, seconds):
    """Shows the moment after a number of seconds; the page pauses."""
    page.get_by_role("slider", name="time").fill(str(round(seconds * 10) * 100))
    expect(page.locator(".time .num")).to_have_text("%.1f s" % seconds)


def notes(page, title):
    """Returns the notes on a device: name, text and mark."""
    return page.evaluate("""(title) => [...document.querySelectorAll("section.phone")].find((one) => one.ariaLabel === title ||
        one.getAttribute("aria-label") === title).querySelectorAll(".card").values().map((card) => [
        card.querySelector("small").textContent, card.children[1].textContent, card.querySelector(".state").textContent]).toArray()""", title)
