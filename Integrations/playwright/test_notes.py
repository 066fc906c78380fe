"""A notes page in Chromium on bad networks."""
import pytest
from playwright.sync_api import expect


def add(page, text):
    page.get_by_label("New note").fill(text)
    page.get_by_role("button", name="Add").click()


def test_notes_that_are_added_offline_are_sent_once_the_network_is_back(page, network, app):
    page.goto("/")
    app.may_respond.clear()
    add(page, "Milk")
    assert app.stored.wait(10)

    # The server has stored the note; its response is lost.
    with network.outage():
        app.may_respond.set()
        add(page, "Bread")
        expect(page.get_by_role("status")).to_have_text("No connection: 2 not sent yet")
        expect(page.locator("li.waiting")).to_have_text(["Milk", "Bread"])
        assert list(app.notes.values()) == ["Milk"]

    expect(page.get_by_role("status")).to_have_text("All notes sent")
    expect(page.locator("li.waiting")).to_have_count(0)
    assert list(app.notes.values()) == ["Milk", "Bread"]
    # The first note was sent again, and the server still has it once.
    assert list(app.puts.values())[0] >= 2


def test_an_outbox_survives_the_tab(page, network, app):
    page.goto("/")
    with network.outage():
        add(page, "Milk")
        expect(page.get_by_role("status")).to_have_text("No connection: 1 not sent yet")
        page.goto("about:blank")
        assert app.notes == {}

    page.goto("/")
    expect(page.get_by_role("status")).to_have_text("All notes sent")
    assert list(app.notes.values()) == ["Milk"]


def test_a_note_whose_response_is_lost_is_sent_again(page, network, app):
    network.fault("PUT /notes/* before-response reset")
    page.goto("/")
    add(page, "Milk")
    expect(page.get_by_role("status")).to_have_text("All notes sent")
    assert list(app.notes.values()) == ["Milk"]
    assert list(app.puts.values()) == [2]


@pytest.mark.network("edge")
def test_a_fault_that_is_added_when_the_page_is_open_fires(page, network, app):
    page.goto("/")
    expect(page.get_by_role("progressbar", name="Loading")).to_be_hidden()
    # The browser sends the note over a connection that it has kept open. It may repeat a request by itself if such a
    # connection is reset.
    with network.fault("PUT /notes/* before-response reset") as fault:
        add(page, "Milk")
        expect(page.get_by_role("status")).to_have_text("All notes sent")
        assert fault.fired == 1
    assert list(app.notes.values()) == ["Milk"]
    assert list(app.puts.values())[0] >= 2


@pytest.mark.network("edge")
def test_a_slow_list_has_a_spinner_until_it_is_there(page, network, app):
    for number in range(1000):
        app.put("n%d" % number, "note %d" % number)
    spinner = page.get_by_role("progressbar", name="Loading")

    page.goto("/", wait_until="commit")
    expect(spinner).to_be_visible()
    expect(page.locator("li")).to_have_count(1000)
    expect(spinner).to_be_hidden()

    # A request and its response take a round trip of 840 ms, the body its time at 240 kbit/s.
    entry = page.evaluate("performance.getEntriesByName(new URL('/notes', location).href)[0].toJSON()")
    shortest = 840 + 8 * entry["encodedBodySize"] / 240
    assert entry["responseEnd"] - entry["requestStart"] >= shortest
