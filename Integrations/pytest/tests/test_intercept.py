"""Faults of requests inside TLS that the network intercepts."""
import http.client
import os
import ssl
import subprocess
import sys

import httpx
import pytest
from secure_server import Shop, make_certificates

from slowlane_pytest import NetworkError

intercepted = pytest.mark.network(forward=True, map={"*.test": "127.0.0.1"}, intercept=["api.test"])
LOST = "POST /orders nth 2 before-response reset"


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder, "api.test")
    return folder


@pytest.fixture(scope="session")
def slowlane_upstream_ca(authority):
    return authority / "ca.pem"


@pytest.fixture
def shop(authority):
    with Shop(authority / "server.pem") as server:
        yield server
        server.shutdown()


def order(network, shop, text):
    """Sends an order by HTTP/1.1 on a connection of its own."""
    tls = ssl.create_default_context(cafile=network.ca_bundle)
    connection = http.client.HTTPSConnection(network.host, network.port, context=tls, timeout=20)
    connection.set_tunnel("api.test", shop.server_port)
    try:
        connection.request("POST", "/orders", text)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@intercepted
def test_the_response_to_the_second_order_is_lost_after_the_server_has_stored_it(network, shop):
    with network.fault(LOST):
        assert order(network, shop, "milk") == "1 orders"
        with pytest.raises(OSError):
            order(network, shop, "bread")
    assert shop.orders == [("http/1.1", "milk"), ("http/1.1", "bread")]
    assert network.status["intercept"]["connections"] == 2


@intercepted
def test_a_client_of_http2_that_repeats_its_order_orders_twice(network, shop):
    tls = ssl.create_default_context(cafile=network.ca_bundle)
    with httpx.Client(http2=True, proxy=network.proxy_url, verify=tls, timeout=20) as client, network.fault(LOST) as fault:
        url = "https://api.test:%d/orders" % shop.server_port
        first = client.post(url, content="milk")
        assert (first.http_version, first.text) == ("HTTP/2", "1 orders")
        with pytest.raises(httpx.RemoteProtocolError):
            client.post(url, content="bread")
        assert client.post(url, content="bread").text == "3 orders"
        assert fault.fired == 1
    assert shop.orders == [("h2", "milk"), ("h2", "bread"), ("h2", "bread")]


@intercepted
def test_the_environment_lets_programs_trust_the_authority(network, shop):
    code = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], b'milk', timeout=20).read().decode())"
    url = "https://api.test:%d/orders" % shop.server_port
    done = subprocess.run([sys.executable, "-c", code, url], env=network.environment, capture_output=True, text=True)
    assert done.stdout == "1 orders\n", done.stderr
    curl = ["curl", "-sS", "--http1.1", "-d", "bread", url]
    assert subprocess.run(curl, env=network.environment, capture_output=True, text=True).stdout == "2 orders"


@pytest.mark.network(forward=True, map={"*.test": "127.0.0.1"}, intercept=["other.test"])
def test_other_hosts_keep_their_certificates(network, shop):
    with pytest.raises(ssl.SSLCertVerificationError):
        order(network, shop, "milk")
    assert shop.orders == []


@pytest.mark.network(upstream="127.0.0.1:1", intercept=["other.test"])
class TestNearestMarker:
    @intercepted
    def test_the_nearest_hosts_win(self, network, shop):
        assert order(network, shop, "milk") == "1 orders"


def test_a_network_with_an_upstream_can_intercept(make_network, authority):
    with Shop(authority / "server.pem") as shop:
        network = make_network("127.0.0.1:%d" % shop.server_port, intercept=True)
        environment = network.environment
        assert "https_proxy" not in {name for name in environment if name not in os.environ}
        curl = ["curl", "-sS", "-d", "milk", "--resolve", "api.test:%d:127.0.0.1" % network.port, "https://api.test:%d/orders" % network.port]
        assert subprocess.run(curl, env=environment, capture_output=True, text=True).stdout == "1 orders"
        shop.shutdown()


def test_the_certificates_are_removed_with_the_network(make_network):
    network = make_network(forward=True, intercept=["api.test"])
    bundle = network.ca_bundle
    with open(bundle, encoding="utf-8") as file:
        assert file.read().endswith(network.ca_certificate)
    network.close()
    assert not os.path.exists(bundle)
    network.close = lambda: None


def test_wrong_arguments_are_errors(make_network):
    for arguments, text in (
            ({"intercept": "api.test"}, "is a list of hosts"), ({"intercept": ["*"]}, "intercept"),
            ({"intercept": ["api.test"], "upstream_ca": "/nowhere.pem"}, "/nowhere.pem"),
            ({"intercept": ["api.test"], "upstream_ca": __file__}, "upstream_tls.ca")):
        with pytest.raises(NetworkError, match=text):
            make_network(forward=True, **arguments)
    with pytest.raises(NetworkError, match="no TLS is intercepted"):
        make_network(forward=True).ca_bundle
