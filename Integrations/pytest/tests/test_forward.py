"""Networks whose clients name their servers."""
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from slowlane_pytest import NetworkError

forward = pytest.mark.network(forward=True, map={"*.test": "127.0.0.1"})


def get(network, url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": network.proxy_url}))
    try:
        with opener.open(url, timeout=20) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.fixture
def origin(slowlane_upstream):
    return slowlane_upstream.rpartition(":")[2]


@forward
def test_clients_name_the_server(network, origin):
    assert get(network, "http://api.test:%s/" % origin) == 200
    assert get(network, "http://127.0.0.1:%s/" % origin) == 200
    assert [(host["host"], host["connections"]) for host in network.hosts] == [("api.test", 1), ("127.0.0.1", 1)]
    assert network.upstream is None and "any server" in network.summary


@pytest.mark.network(forward=True, map={"*.test": "127.0.0.1"}, to={
    "slow.test": {"netem": {"down": "delay 200ms", "up": "delay 200ms"}}, "cdn.test": "refuse"})
def test_rules_change_and_restore_restores_them(network, origin):
    start = time.monotonic()
    assert get(network, "http://slow.test:%s/" % origin) == 200
    # The handshake and the exchange have a round trip each.
    assert time.monotonic() - start >= 0.8
    assert get(network, "http://cdn.test:%s/" % origin) == 502
    network.rules(to={"api.test": "refuse"})
    assert get(network, "http://cdn.test:%s/" % origin) == 200
    assert get(network, "http://api.test:%s/" % origin) == 502
    network.restore()
    assert get(network, "http://cdn.test:%s/" % origin) == 502


@pytest.mark.network(upstream="127.0.0.1:1")
class TestNearestMarker:
    @forward
    def test_forward_wins(self, network, origin):
        assert get(network, "http://api.test:%s/" % origin) == 200

    @pytest.mark.network("edge")
    def test_a_network_with_an_upstream_has_no_proxy_url(self, network):
        for use in (lambda: network.proxy_url, lambda: network.environment, lambda: network.rules(to={})):
            with pytest.raises(NetworkError, match="has an upstream"):
                use()


@forward
def test_the_environment_leads_programs_through_the_proxy(network, origin):
    code = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).status)"
    done = subprocess.run(
        [sys.executable, "-c", code, "http://api.test:%s/" % origin], env=network.environment, capture_output=True, text=True)
    assert done.stdout == "200\n", done.stderr
    assert network.hosts[0]["host"] == "api.test"


@forward
def test_faults_and_conditions_apply(network, origin):
    with network.fault("GET /3 before-request respond 503"):
        assert get(network, "http://api.test:%s/3" % origin) == 503
    with network.offline():
        assert get(network, "http://api.test:%s/" % origin) == 502
    assert get(network, "http://api.test:%s/" % origin) == 200


def test_make_network_makes_forward_networks(make_network, slowlane_upstream, origin):
    assert get(make_network(forward=True), "http://127.0.0.1:%s/" % origin) == 200
    for arguments in ({}, {"to": {"a.test": "3g"}}, {"upstream": slowlane_upstream, "forward": True}):
        with pytest.raises(NetworkError):
            make_network(**arguments)
    with pytest.raises(NetworkError, match="unknown profile 'wify'"):
        make_network(forward=True, to={"a.test": "wify"})
