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
steps:
  - { at: 1s, A: { edit: n1, text: "<!-- <script>" } }
  - at: 2s
    A: { send: { method: PUT, path: "/notes/<img/src=x/onerror=window.hacked=1>", headers: { X-Evil: "</script><b>" }, body: "<i>" } }
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


def rows(tab):
    return tab.locator("section[aria-label=Requests] tbody tr")


def test_lanes_and_table_have_every_request(tab, tmp_path):
    url, data = report(tmp_path, "two-device-soak", "--variant", "none")
    tab.goto(url)
    requests = [entry for entry in data["entries"] if entry["type"] == "request"]
    assert len(requests) > 100
    expect(rows(tab)).to_have_count(len(requests))
    expect(tab.locator("svg rect.hit")).to_have_count(len(requests))
    expect(tab.locator("svg text.name")).to_have_text(["A", "B", "W"])
    links = {entry["link"] for entry in data["entries"] if entry["type"] == "network"}
    titles = " ".join(tab.locator("svg title").all_text_contents())
    assert all(link in titles for link in links)
    lost = sum(1 for entry in data["entries"] if entry["type"] == "failed")
    tab.get_by_label("filter requests").fill("lost")
    expect(rows(tab)).to_have_count(lost)
    tab.get_by_label("filter requests").fill("put & lost a")
    for text in rows(tab).all_inner_texts():
        assert "PUT" in text and "lost" in text


def test_a_range_of_the_timeline_limits_the_table(tab, tmp_path):
    url, data = report(tmp_path, "two-device-soak", "--variant", "none")
    tab.goto(url)
    expect(tab.locator(".badge").first).to_have_text("pass")
    box = tab.locator("svg").bounding_box()
    total = rows(tab).count()
    tab.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 60)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 60, steps=4)
    expect(tab.locator("svg .selection")).to_have_count(1)
    tab.mouse.up()
    expect(tab.locator("svg .selection")).to_have_count(0)
    shown = rows(tab).count()
    assert 0 < shown < total
    length = data["run"]["duration_ns"] / 1e9
    seconds = [float(text.split(" min ")[-1].split(" s")[0]) + 60 * (int(text.split(" min")[0]) if " min" in text else 0)
               for text in rows(tab).locator("td:first-child").all_inner_texts()]
    assert min(seconds) > 0.1 * length and max(seconds) < 0.6 * length
    tab.get_by_role("button", name="whole run").click()
    expect(rows(tab)).to_have_count(total)
    tab.locator("svg").focus()
    tab.keyboard.press("+")
    assert rows(tab).count() < total
    tab.keyboard.press("0")
    expect(rows(tab)).to_have_count(total)


def test_every_check_is_listed_with_its_moment(tab, tmp_path):
    url, data = report(tmp_path, "edit-conflict-after-subway", "--mutant", "overwrites-on-conflict")
    tab.goto(url)
    section = tab.locator("section[aria-label='Expectations and invariants']")
    checks = data["run"]["checks"]
    expect(section.locator("tbody tr")).to_have_count(len(checks))
    invariant = next(one for one in checks if one["check"].startswith("invariant: no-silent-overwrite"))
    row = section.locator("tr", has_text="no-silent-overwrite (I3)").first
    expect(row).to_contain_text("fail")
    expect(row).to_contain_text("%.1f s" % (invariant["time_ns"] / 1e9))
    expect(section).to_contain_text("invariants checked: no-lost-write (I1)")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_fits_its_window(tab, tmp_path, request, scheme, width):
    url, _ = report(tmp_path, "edit-conflict-after-subway", "--mutant", "overwrites-on-conflict")
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": width, "height": 800})
    tab.goto(url)
    expect(tab.locator(".badge").first).to_have_text("fail")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    folder = request.config.getoption("--screenshots")
    if folder:
        tab.screenshot(path=os.path.join(folder, "report-%s-%d.png" % (scheme, width)), full_page=True)
