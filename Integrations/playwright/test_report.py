"""The page that `slowlane run --report` writes, opened from its file."""
import json
import os
import subprocess

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

HOSTILE = """
scenario: 1
name: hostile
about: Texts with <img src=x onerror=window.hacked=1> and </script> are texts.
server: { notes: { n1: { title: "<img src=x onerror=window.hacked=1>", text: "</script><script>window.hacked=1</script>" } } }
devices: { A: { user: ada } }
network: { A: { 0s: wifi } }
steps: [{ at: 1s, A: { edit: n1, text: "<!-- <script>" } }]
expect: { finally: { server: { n1: { text: "</script><b>" } } } }
"""


def report(folder, *arguments):
    """Runs a scenario; returns the URL of its page, and its data."""
    command = [os.environ["SLOWLANE_PROGRAM"], "run", *arguments, "--report", str(folder), "--quiet"]
    subprocess.run(command, capture_output=True, check=False)
    return (folder / "report.html").as_uri(), json.loads((folder / "result.json").read_text())


@pytest.fixture
def tab(browser):
    """A tab; the test fails if the tab reports an error or asks for anything that is no file."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    problems = []
    tab.on("console", lambda message: problems.append(message.text))
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("request", lambda request: None if request.url.startswith("file:") else problems.append(request.url))
    yield tab
    tab.close()
    assert problems == []


def test_a_failure_is_told_with_the_moment_that_decided(tab, tmp_path):
    url, data = report(tmp_path, "edit-conflict-after-subway", "--mutant", "overwrites-on-conflict")
    tab.goto(url)
    expect(tab.locator(".badge").first).to_have_text("fail")
    failed = [check for check in data["run"]["checks"] if check["outcome"] == "fail"]
    decided = tab.get_by_label("what decided")
    expect(decided).to_contain_text(failed[0]["check"])
    expect(decided).to_contain_text(failed[0]["reason"])
    expect(tab.locator(".replay code")).to_have_text(
        "slowlane run edit-conflict-after-subway --variant none --seed 12 --mutant overwrites-on-conflict")
    expect(tab.locator("svg text", has_text="100-loss")).to_be_visible()
    tab.get_by_label("filter requests").fill("put 409")
    expect(tab.locator("section[aria-label=Requests] tbody tr")).to_have_count(1)
    decided.get_by_role("button").nth(2).click()
    expect(tab.get_by_text("at 26.7 s", exact=True)).to_be_visible()


def test_a_moment_can_be_linked_to(tab, tmp_path):
    url, _ = report(tmp_path, "edit-conflict-after-subway")
    tab.goto(url + "#t=10")
    expect(tab.get_by_text("at 10.0 s", exact=True)).to_be_visible()
    expect(tab.locator(".phone")).to_contain_text("outbox 1")


def test_texts_of_a_scenario_are_text(tab, tmp_path):
    scenario = tmp_path / "hostile.yaml"
    scenario.write_text(HOSTILE)
    url, _ = report(tmp_path, str(scenario), "--show-text")
    tab.goto(url)
    expect(tab.locator(".badge").first).to_have_text("fail")
    expect(tab.locator(".about")).to_contain_text("<img src=x onerror=window.hacked=1> and </script>")
    assert tab.evaluate("window.hacked") is None
    assert tab.evaluate("document.images.length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_a_report(tab, tmp_path, scheme):
    url, _ = report(tmp_path, "post-answer-lost", "--variant", "killed-while-waiting")
    tab.emulate_media(color_scheme=scheme)
    tab.goto(url)
    expect(tab.locator(".badge").first).to_have_text("pass")
    for width in (1280, 360):
        tab.set_viewport_size({"width": width, "height": 780})
        found = [one["id"] for one in Axe().run(tab).response["violations"] if one["impact"] in ("serious", "critical")]
        assert found == []
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
