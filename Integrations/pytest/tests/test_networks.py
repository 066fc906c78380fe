"""Twenty networks, each measured from the side of the client. With `-n 4` four of them exist at any time.

Nothing may be faster than the figures of a network; how much slower it may be leaves room for a busy machine, but not for the figures
of another network of this file.
"""
import http.client
import socket
import time

import pytest

marked = pytest.mark.network


def request(network, method="GET", path="/", body=None, timeout=20):
    connection = http.client.HTTPConnection(network.host, network.port, timeout=timeout)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def fastest(measure, limit):
    """Returns the least of some measurements, the first of which below `limit` is the last: the machine may pause."""
    times = [measure()]
    while times[-1] >= limit and len(times) < 3:
        times.append(measure())
    return min(times)


def round_trips(network, count):
    """Returns the seconds of the first exchange on a connection, with its handshake, and of the fastest of `count` more."""
    connection = http.client.HTTPConnection(network.host, network.port, timeout=20)
    times = []
    for _ in range(count + 1):
        start = time.monotonic()
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"xx"
        times.append(time.monotonic() - start)
    connection.close()
    return times[0], min(times[1:])


@marked("high-latency-dns")
def test_dns_delay_precedes_the_first_response(network):
    first, later = round_trips(network, 2)
    assert 3 <= first < 4
    assert later < 0.1


@pytest.mark.parametrize("milliseconds", [
    pytest.param(2, marks=marked("wifi"), id="wifi"),
    pytest.param(10, marks=marked("dsl"), id="dsl"),
    pytest.param(70, marks=marked(netem={"down": "delay 50ms", "up": "delay 20ms"}), id="netem"),
    pytest.param(115, marks=marked("lte"), id="lte"),
    pytest.param(200, marks=marked("3g"), id="3g"),
    pytest.param(300, marks=marked(conditions={"down": {"delay": "0 ms"}, "up": {"delay": "300 ms"}}), id="conditions"),
    pytest.param(840, marks=marked("edge"), id="edge"),
])
def test_round_trip_is_that_of_the_link(network, milliseconds):
    expected = milliseconds / 1000
    limit = 1.25 * expected + 0.04
    firsts = []

    def measure():
        first, later = round_trips(network, 1 if milliseconds > 400 else 3)
        firsts.append(first)
        return later

    assert expected <= fastest(measure, limit) < limit, network.conditions
    # The handshake costs a round trip more.
    assert min(firsts) >= 2 * expected


@pytest.mark.parametrize("method, size, kbits", [
    pytest.param("GET", 150_000, 2000, marks=marked("dsl"), id="dsl-down"),
    pytest.param("POST", 20_000, 256, marks=marked("dsl"), id="dsl-up"),
    pytest.param("GET", 100_000, 800, marks=marked(netem={"down": "rate 800kbit"}), id="netem-down"),
    pytest.param("GET", 400_000, 5000, marks=marked("wpt-cable"), id="wpt-cable"),
])
def test_throughput_is_that_of_the_link(network, method, size, kbits):
    path, content = ("/%d" % size, None) if method == "GET" else ("/", b"x" * size)

    def measure():
        start = time.monotonic()
        status, body = request(network, method, path, content)
        assert (status, len(body)) == (200, size) or body == b"%d" % size
        return time.monotonic() - start

    payload = size * 8 / kbits / 1000
    limit = 1.5 * payload + 0.15
    assert payload <= fastest(measure, limit) < limit, network.conditions


@marked("3g")
def test_a_fault_applies_to_the_next_request_of_an_open_connection(network):
    connection = http.client.HTTPConnection(network.host, network.port, timeout=20)

    def status():
        connection.request("GET", "/")
        response = connection.getresponse()
        response.read()
        return response.status

    assert status() == 200
    with network.fault("GET * before-request respond 503"):
        assert status() == 503
        assert status() == 200
    assert network.status["connections_accepted"] == 1
    connection.close()


@marked(timeline="0s: wifi, 400ms: 3g")
def test_a_timeline_changes_the_conditions(network):
    start = time.monotonic()
    _, wifi = round_trips(network, 3)
    time.sleep(max(0, 0.5 - (time.monotonic() - start)))
    _, umts = round_trips(network, 1)
    assert wifi < 0.2 <= umts


def test_offline_times_out_and_then_connects(network):
    with network.outage():
        with pytest.raises(socket.timeout):
            request(network, timeout=0.4)
    assert request(network) == (200, b"xx")


@marked("wifi")
def test_offline_in_mid_request_stalls_the_request_until_its_end(network):
    connection = http.client.HTTPConnection(network.host, network.port, timeout=20)
    connection.request("GET", "/")
    connection.getresponse().read()
    start = time.monotonic()
    with network.outage():
        connection.request("GET", "/")
        time.sleep(0.5)
    assert connection.getresponse().read() == b"xx"
    assert time.monotonic() - start >= 0.5
    assert network.conditions["profile"] == "wifi"


def test_offline_lasts_until_restore(network):
    network.offline()
    with pytest.raises(ConnectionRefusedError):
        request(network)
    network.restore()
    assert request(network) == (200, b"xx")


@marked("portal")
def test_portal_serves_its_own_page(network):
    status, body = request(network)
    assert status == 200 and b"<html" in body.lower()


@marked("uplink-loss")
def test_uplink_loss_sends_nothing(network):
    with pytest.raises(socket.timeout):
        request(network, timeout=0.4)
    assert network.status["sent_bytes"]["up"] == 0


def test_cut_resets_open_connections(network):
    with socket.create_connection((network.host, network.port), timeout=20) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        assert network.disconnect() == 1
        with pytest.raises(ConnectionResetError):
            while client.recv(100):
                pass
    assert network.disconnect() == 0
    assert request(network) == (200, b"xx")


def test_toxic_lasts_until_restore(network):
    network.toxic("latency", latency=250)
    _, slow = round_trips(network, 1)
    network.restore()
    _, fast = round_trips(network, 3)
    assert fast < 0.25 <= slow


def test_a_fault_loses_the_response_of_the_matching_request(network):
    fault = network.fault("GET /3 nth 2 before-response reset")
    assert request(network, path="/3") == (200, b"xxx")
    assert request(network) == (200, b"xx")
    assert fault.fired == 0
    with pytest.raises(ConnectionResetError):
        request(network, path="/3")
    assert (fault.fired, fault.status["matched"]) == (1, 2)
    assert request(network, path="/3") == (200, b"xxx")


def test_a_fault_ends_with_its_block_and_with_restore(network):
    with network.fault("any times unlimited before-request respond 503") as fault:
        assert [request(network)[0] for _ in range(2)] == [503, 503]
        assert fault.fired == 2
    assert request(network) == (200, b"xx")
    network.fault("any before-request respond 503")
    network.restore()
    assert request(network) == (200, b"xx")


@marked("edge", upstream="127.0.0.1:1")
def test_a_closed_port_of_the_server_resets(network):
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        request(network)
