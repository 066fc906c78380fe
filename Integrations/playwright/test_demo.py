"""The page of `slowlane demo`: in simulation, over real sockets, and from a file."""
import json
import os
import pathlib
import subprocess
import time
import urllib.request

import pytest
from playwright.sync_api import expect

from dashboard_page import check
from demo_server import STEPS, DemoServer, notes, phone, seek, watch

AGREED = [["n1", "3 l, oat", ""], ["n2", "passport", ""], ["n3", "two, at the window", ""]]


@pytest.fixture(scope="module")
def demo():
    with DemoServer() as server:
        yield server


@pytest.fixture
def tab(browser, demo):
    """The page, paused at its start; the test fails if the page reports an error or asks another origin for anything."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    problems = watch(page, demo.url + "/")
    page.goto(demo.url)
    expect(phone(page)).to_contain_text("Milk")
    yield page
    page.close()
    assert problems == []


def caption(page):
    return page.locator(".caption")


def promises(page):
    return page.get_by_role("list", name="promises", exact=True).get_by_role("listitem").all_inner_texts()


def test_the_first_picture_has_data_within_2_seconds_of_the_command(browser):
    page = browser.new_page()
    with DemoServer() as server:
        page.goto(server.url)
        expect(phone(page)).to_contain_text("Milk")
        passed = time.monotonic() - server.started
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        page.close()
    print("first picture with data after %.2f s, first contentful paint %.0f ms after the navigation" % (passed, paint))
    assert passed < 2


def test_six_steps_play_to_an_agreement_at_tenfold_speed(tab):
    tab.get_by_role("button", name="10×").click()
    began = time.monotonic()
    for number, name in enumerate(STEPS):
        expect(caption(tab)).to_contain_text("step %d of 6: %s" % (number + 1, name))
    expect(tab.get_by_role("button", name="play", exact=True)).to_be_visible()
    assert 4 < time.monotonic() - began < 9
    assert notes(tab, "Ada's phone") == AGREED
    assert notes(tab, "Ada's tablet") == AGREED
    assert promises(tab) == [
        "✓ nothing is lost", "✓ nothing is doubled", "✓ typed text stays", "✓ conflicts are shown", "✓ the same everywhere"]
    log = tab.get_by_role("list", name="log of the server").inner_text()
    assert "A PUT n1 base 1 → 409" in log and log.count("A POST n3") == 2


def test_each_step_shows_what_its_caption_says(tab):
    seek(tab, 6)
    assert notes(tab, "Ada's tablet")[1] == ["n2", "passport", ""]
    seek(tab, 13)
    assert notes(tab, "Ada's phone")[0] == ["n1", "2 l, oat", "↑ waiting"]
    expect(phone(tab)).to_contain_text("1 change to send")
    expect(tab.locator(".wire").first).to_contain_text("tunnel, no service")
    seek(tab, 22)
    assert notes(tab, "Ada's tablet")[0] == ["n1", "3 l", ""]
    assert notes(tab, "Ada's phone")[0] == ["n1", "2 l, oat", "↑ waiting"]
    seek(tab, 34)
    assert notes(tab, "Ada's phone")[0] == ["n1", "2 l, oat", "◆ conflict"]
    expect(phone(tab)).to_contain_text("on the tablet: 3 l")
    expect(phone(tab)).to_contain_text("1 waiting for Ada's decision")
    seek(tab, 47)
    assert notes(tab, "Ada's tablet")[0] == notes(tab, "Ada's phone")[0] == ["n1", "3 l, oat", ""]
    seek(tab, 49.8)
    assert notes(tab, "Ada's phone")[2] == ["n3", "two, at the window", "↑ waiting"]


def test_it_pauses_goes_back_and_has_three_speeds(tab):
    button = tab.get_by_role("button", name="pause")
    button.click()
    clock = tab.locator(".time .num")
    shown = clock.inner_text()
    tab.wait_for_timeout(300)
    assert clock.inner_text() == shown
    for speed in (1, 2, 10):
        tab.get_by_role("button", name="%d×" % speed).click()
        start, began = float(clock.inner_text()[:-2]), time.monotonic()
        tab.wait_for_timeout(1000)
        played, passed = float(clock.inner_text()[:-2]) - start, time.monotonic() - began
        assert played == pytest.approx(speed * passed, rel=0.35), speed
        expect(tab.get_by_role("button", name="%d×" % speed)).to_have_attribute("aria-pressed", "true")
    tab.get_by_role("button", name="5 The decision").click()
    expect(caption(tab)).to_contain_text("step 5 of 6")
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("ArrowLeft")
    expect(caption(tab)).to_contain_text("step 3 of 6")
    tab.get_by_role("button", name="restart").click()
    expect(caption(tab)).to_contain_text("step 1 of 6")


def test_keys_work_after_a_click_and_a_paused_step_shows_what_its_caption_says(tab):
    clock = tab.locator(".time .num")
    tab.get_by_role("button", name="pause").click()
    tab.keyboard.press("Space")
    expect(tab.get_by_role("button", name="pause")).to_be_visible()
    tab.keyboard.press("Space")
    for seconds in (17, 27, 36, 47, 60):
        tab.keyboard.press("ArrowRight")
        expect(clock).to_have_text("%.1f s" % seconds)
    tab.get_by_role("slider", name="time").click()
    expect(caption(tab)).to_contain_text("step 4 of 6")
    tab.keyboard.press("ArrowRight")
    expect(clock).to_have_text("47.0 s")


def test_the_legacy_client_breaks_four_promises(tab):
    tab.get_by_role("button", name="a client with defects").click()
    seek(tab, 60)
    expect(tab.get_by_role("list", name="promises", exact=True)).not_to_contain_text("…")
    assert promises(tab) == [
        "✗ nothing is lost", "✓ nothing is doubled", "✗ typed text stays", "✗ conflicts are shown", "✗ the same everywhere"]
    seek(tab, 30)
    assert {one[0] for one in promises(tab)} == {"…"}
    seek(tab, 35)
    assert [one for one in promises(tab) if one[0] != "…"] == ["✗ nothing is lost", "✗ conflicts are shown"]
    expect(caption(tab)).to_contain_text("The phone hides the conflict.")
    seek(tab, 60)
    reasons = tab.get_by_role("list", name="broken promises").get_by_role("listitem")
    expect(reasons).to_have_count(4)
    expect(reasons.nth(0)).to_contain_text("what Ada typed into Milk on the phone at 11.0 s is not on the server")
    assert notes(tab, "Ada's phone") != notes(tab, "Ada's tablet")
    tab.get_by_role("button", name="a correct client").click()
    expect(reasons).to_have_count(0)


def test_a_run_over_real_sockets_takes_the_edits_of_the_viewer(tab):
    """It takes a minute: real time, real sockets. Both devices end with what the viewer typed on them."""
    tab.get_by_role("button", name="live on this computer: type yourself").click()
    typed = {"Ada's phone": ("Trip", "passport, charger"), "Ada's tablet": ("Trip", "passport, charger, maps")}
    expect(phone(tab, "Ada's tablet")).to_contain_text("Trip", timeout=20_000)
    expect(tab.get_by_role("button", name="2 The tunnel")).to_be_disabled()
    for title, (note, text) in typed.items():
        device = phone(tab, title)
        device.get_by_label("note on " + title).select_option(note)
        device.get_by_label("your text on " + title).fill(text)
        device.get_by_role("button", name="save").click()
        expect(device.get_by_text(text, exact=True)).to_be_visible()
        if title == "Ada's phone":
            # In a tunnel meanwhile or not: the text arrives.
            expect(phone(tab, "Ada's tablet").get_by_text(text, exact=True)).to_be_visible(timeout=60_000)
    expect(tab.get_by_role("button", name="play", exact=True)).to_be_visible(timeout=90_000)
    assert notes(tab, "Ada's phone") == notes(tab, "Ada's tablet")
    assert notes(tab, "Ada's phone")[1] == ["n2", "passport, charger, maps", ""]
    assert [one for one in promises(tab) if one[0] != "✓"] == []


def test_a_recorded_page_needs_no_server(browser, tmp_path):
    path = tmp_path / "offline.html"
    subprocess.run([os.environ["SLOWLANE_PROGRAM"], "demo", "--record", str(path)], check=True, capture_output=True)
    assert path.stat().st_size < 200_000
    page = browser.new_page()
    problems = watch(page, path.as_uri())
    page.goto(path.as_uri())
    expect(phone(page)).to_contain_text("Milk")
    expect(page.get_by_role("button", name="live on this computer: type yourself")).to_have_count(0)
    seek(page, 60)
    assert notes(page, "Ada's phone") == notes(page, "Ada's tablet") == AGREED
    page.get_by_role("button", name="a client with defects").click()
    seek(page, 60)
    assert len([one for one in promises(page) if one[0] == "✗"]) == 4
    page.close()
    assert problems == []


def test_the_scenario_of_the_page_has_the_run_of_the_page(demo, tmp_path):
    def get(path):
        with urllib.request.urlopen(demo.url + path, timeout=30) as response:
            return response.read()

    run = json.loads(get("/run.json?client=current"))["run"]
    assert run["replay"] == ["slowlane", "demo"]
    assert run["digest"] in (pathlib.Path(__file__).parents[2] / "docs/how-to/demo.md").read_text()
    path = tmp_path / "subway.yaml"
    path.write_bytes(get("/subway.yaml"))
    command = [os.environ["SLOWLANE_PROGRAM"], "run", str(path), "--variant", "none", "--json"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert '"digest":"%s"' % run["digest"] in text


def test_an_act_without_the_header_of_the_page_is_not_found(demo, browser):
    page = browser.new_page()
    page.goto(demo.url)
    send = "(fields) => fetch('act?viewer=0123', {method: 'POST', headers: fields, body: '{}'}).then((one) => one.status)"
    assert page.evaluate(send, {}) == 404
    assert page.evaluate(send, {"X-Slowlane-Dashboard": "1"}) == 400
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_the_demo(tab, scheme):
    tab.emulate_media(color_scheme=scheme)
    for client in ("a correct client", "a client with defects"):
        tab.get_by_role("button", name=client).click()
        for seconds in (13, 34, 60):
            seek(tab, seconds)
            for width in (1280, 360):
                tab.set_viewport_size({"width": width, "height": 780})
                check(tab)


def test_without_motion_messages_are_words(tab):
    tab.emulate_media(reduced_motion="reduce")
    tab.reload()
    expect(phone(tab)).to_contain_text("Milk")
    seek(tab, 30.5)
    expect(tab.locator(".pipe .dot")).to_have_count(0)
    expect(tab.locator(".wire").first).to_contain_text("PUT n1")
