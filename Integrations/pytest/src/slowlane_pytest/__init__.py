"""A pytest plugin: the fixture `network` is a proxy of the test's own, with the conditions of the marker `network`.

Each pytest process (with xdist, each worker) starts one `slowlane server` on a free port when a test first needs it.
"""
import argparse
import hashlib
import os
import random
import re
import shlex
import sys

import pytest

from .network import Fault, Network, forward_setting, link_setting, tls_setting
from .server import NetworkError, Server, find_program

__all__ = ["Fault", "Network", "NetworkError"]

_state = pytest.StashKey()
_networks = pytest.StashKey()

_SERVER_KEYS = ("upstream", "forward", "to", "map")
_TLS_KEYS = ("intercept", "upstream_ca")
_KEYS = _SERVER_KEYS + _TLS_KEYS + ("timeline", "netem", "conditions")


class _State:
    """What a pytest process knows: the seed of the run, and its server."""

    def __init__(self, config):
        self.config = config
        worker = getattr(config, "workerinput", {})
        given = config.getoption("slowlane_seed")
        if given is None:
            given = worker.get("slowlane_seed")
        if given is None and os.environ.get("SLOWLANE_SEED"):
            try:
                given = _seed(os.environ["SLOWLANE_SEED"])
            except argparse.ArgumentTypeError as error:
                raise pytest.UsageError("SLOWLANE_SEED: %s" % error) from None
        self.seed = random.SystemRandom().randrange(1 << 32) if given is None else given
        self.server = None
        self.count = 0

    def running_server(self):
        """Returns the server; starts it if it is not running."""
        if self.server is None or not self.server.is_running:
            self.stop()
            self.server = Server(self.program())
        return self.server

    def program(self):
        option = self.config.getoption("slowlane_program")
        if option:
            return find_program(option, "--slowlane-program", self.config.invocation_params.dir)
        variable = os.environ.get("SLOWLANE_PROGRAM")
        if variable:
            return find_program(variable, "SLOWLANE_PROGRAM", self.config.invocation_params.dir)
        return find_program(self.config.getini("slowlane_program"), "slowlane_program in the ini file", self.config.rootpath)

    def stop(self):
        server, self.server = self.server, None
        if server is not None:
            server.stop()


def pytest_addoption(parser):
    group = parser.getgroup("slowlane", "networks of tests (slowlane)")
    group.addoption("--slowlane-program", metavar="PATH", help="the program slowlane (default: $SLOWLANE_PROGRAM, the ini value, the program of slowlane-proxy, PATH)")
    group.addoption("--slowlane-upstream", metavar="HOST:PORT", help="the server under test (default: the ini value)")
    group.addoption("--slowlane-seed", type=_seed, metavar="N", help="the random seed of all networks (default: $SLOWLANE_SEED, else random)")
    parser.addini("slowlane_program", "the program slowlane: a path, relative to the root folder, or a name on PATH", default="")
    parser.addini("slowlane_upstream", "the server under test, HOST:PORT", default="")


def _seed(text):
    if not re.fullmatch("[0-9]{1,19}", text) or int(text) >= 1 << 63:
        raise argparse.ArgumentTypeError("'%s' is not a number from 0 to 2^63 - 1" % text)
    return int(text)


def _check_program_argument(config):
    """Refuses a path of the program that is an argument of its own.

    pytest finds its root folder before it loads plugins. It does not know the option then, and takes the path for one of tests.
    """
    arguments = shlex.split(os.environ.get("PYTEST_ADDOPTS", "")) + list(config.invocation_params.args)
    for option, path in zip(arguments, arguments[1:]):
        if option == "--slowlane-program" and os.path.exists(os.path.join(str(config.invocation_params.dir), path)):
            raise pytest.UsageError(
                "'--slowlane-program %s': pytest takes the path for that of a test and looks for its ini file there; write "
                "--slowlane-program=%s" % (path, shlex.quote(path)))


def pytest_configure(config):
    _check_program_argument(config)
    config.addinivalue_line(
        "markers",
        "network(profile=None, *, upstream=None, forward=False, to=None, map=None, intercept=None, upstream_ca=None, timeline=None, "
        "netem=None, conditions=None): "
        "the conditions of the fixture 'network', and the server behind it. The marker nearest to the test wins.")
    config.stash[_state] = _State(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    # All workers of xdist have one seed, so that one number repeats the run.
    node.workerinput["slowlane_seed"] = node.config.stash[_state].seed


def pytest_unconfigure(config):
    state = config.stash.get(_state, None)
    if state is not None:
        state.stop()


def pytest_report_header(config):
    return "slowlane: seed %d" % config.stash[_state].seed


def pytest_collection_modifyitems(items):
    for item in items:
        if any(mark.name == "network" for mark in item.own_markers) and not _uses_network(item):
            item.warn(pytest.PytestWarning("the marker 'network' has no effect: the test does not use the fixture 'network'"))


def _uses_network(item):
    names = getattr(item, "fixturenames", ())
    return "network" in names or "make_network" in names


def _marked(item):
    """Returns the arguments of the markers: the servers, the arguments about TLS and the conditions, each from the nearest marker
    that gives them."""
    servers, tls, link = None, None, None
    for mark in item.iter_markers("network"):
        unknown = [key for key in mark.kwargs if key not in _KEYS + ("profile",)]
        if unknown or len(mark.args) > 1:
            raise NetworkError("the marker 'network' takes a profile and %s, not %s" % (
                ", ".join(_KEYS), ", ".join(unknown) or mark.args))
        arguments = {key: value for key, value in mark.kwargs.items() if key not in _SERVER_KEYS + _TLS_KEYS}
        if mark.args:
            if "profile" in arguments:
                raise NetworkError("the marker 'network' has two profiles")
            arguments["profile"] = mark.args[0]
        if link is None and arguments:
            link = link_setting(**arguments)
        servers = servers or _servers(**{key: mark.kwargs[key] for key in _SERVER_KEYS if key in mark.kwargs})
        tls = tls or {key: mark.kwargs[key] for key in _TLS_KEYS if key in mark.kwargs}
    return servers, tls or {}, link_setting() if link is None else link


def _servers(upstream=None, forward=False, to=None, map=None):
    """Returns the address of the server, the definition of a forward proxy, or `None` if neither is given."""
    if forward and upstream:
        raise NetworkError("give upstream or forward, not both; clients of a forward proxy name the server")
    if not forward and not (to is None and map is None):
        raise NetworkError("'to' and 'map' need forward=True")
    return forward_setting(to, map) if forward else upstream


@pytest.fixture(scope="session")
def slowlane_upstream(pytestconfig):
    """The address of the server under test, HOST:PORT. Override this fixture if the server has a random port."""
    return pytestconfig.getoption("slowlane_upstream") or pytestconfig.getini("slowlane_upstream") or None


@pytest.fixture(scope="session")
def slowlane_upstream_ca():
    """The PEM file of the authorities of the servers behind intercepted connections; `None` for those of the system."""
    return None


@pytest.fixture
def make_network(request):
    """A function that creates a network to another server, `make_network("127.0.0.1:5432", "3g")`, or to all of them,
    `make_network(forward=True)`."""
    networks = request.node.stash.setdefault(_networks, [])

    def make(upstream=None, profile=None, *, forward=False, to=None, map=None, intercept=None, upstream_ca=None, timeline=None,
             netem=None, conditions=None):
        servers = _servers(upstream, forward, to, map)
        if not servers:
            raise NetworkError("make_network needs the address of a server, or forward=True")
        tls = {"intercept": intercept, "upstream_ca": upstream_ca}
        return _create(request, networks, servers, tls, link_setting(profile, timeline, netem, conditions))

    yield make
    for network in networks:
        try:
            network.close()
        except NetworkError:
            # The next test starts another server if this one has ended; a failed call has already failed the test.
            pass


@pytest.fixture
def network(request, make_network):
    """A proxy between this test and the server under test, with the conditions of the marker `network`."""
    networks = request.node.stash[_networks]
    try:
        servers, tls, link = _marked(request.node)
        servers = servers or request.getfixturevalue("slowlane_upstream")
        if not servers:
            raise NetworkError(
                "no server is given; use @pytest.mark.network(upstream=\"127.0.0.1:8000\"), --slowlane-upstream, "
                "'slowlane_upstream' in the ini file, or override the fixture 'slowlane_upstream'")
        return _create(request, networks, servers, tls, link)
    except NetworkError as error:
        text = "network: %s" % error
    pytest.fail(text, pytrace=False)


def _create(request, networks, servers, tls, link):
    if tls.get("intercept") and tls.get("upstream_ca") is None:
        tls = dict(tls, upstream_ca=request.getfixturevalue("slowlane_upstream_ca"))
    state = request.config.stash[_state]
    state.count += 1
    name = "%s-%d" % (re.sub(r"[^A-Za-z0-9_.]+", "-", request.node.name)[:100], state.count)
    # The test's name decides, not the order of the tests, which differs between runs with xdist.
    text = "%d/%s/%d" % (state.seed, request.node.nodeid, len(networks))
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")
    created = Network(state.running_server(), name, servers, link, seed, state.seed, tls_setting(**tls))
    networks.append(created)
    _record_properties(request.node, created)
    return created


def _record_properties(item, network):
    """Records what a JUnit report needs to repeat a test, passed or failed: its seed, its networks and the command."""
    properties = item.user_properties
    if not any(name == "slowlane_seed" for name, _ in properties):
        properties.append(("slowlane_seed", str(item.config.stash[_state].seed)))
        properties.append(("slowlane_repeat", _repeat_command(item)))
    properties.append(("slowlane_network", network.summary))


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item):
    # After the test's function, if that has passed.
    try:
        for network in item.stash.get(_networks, []):
            network.check_faults()
        return
    except NetworkError as error:
        text = "network: %s" % error
    # Outside of the handler, whose error would be shown too.
    pytest.fail(text, pytrace=False)


def _argument(item):
    """Returns the argument of pytest that selects a test: its identifier with the path from the working directory."""
    path, *names = item.nodeid.split("::", 1)
    path = os.path.relpath(item.config.rootpath / path, item.config.invocation_params.dir)
    return "::".join([path.replace(os.sep, "/"), *names])


def _repeat_command(item):
    """Returns the command that runs a test again with the same networks. A path after '=' is not taken for one of tests."""
    # A worker of xdist has the arguments of the process that has started it.
    program = getattr(item.config, "workerinput", {}).get("mainargv", sys.argv)[0]
    # 'python -m pytest' also finds modules in the working directory.
    words = ["python", "-m", "pytest"] if os.path.basename(program) == "__main__.py" else ["pytest"]
    words.append(_argument(item))
    for option in ("slowlane_program", "slowlane_upstream"):
        value = item.config.getoption(option)
        if value:
            words.append("--%s=%s" % (option.replace("_", "-"), value))
    words.append("--slowlane-seed=%d" % item.config.stash[_state].seed)
    return shlex.join(words)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item):
    outcome = yield
    report = outcome.get_result()
    networks = item.stash.get(_networks, [])
    if not report.failed or not networks:
        return
    lines = [line for network in networks for line in network.describe()]
    lines.append("repeat with: " + _repeat_command(item))
    text = "\n".join(lines)
    report.sections.append(("slowlane network", text))
    # A JUnit report has the captured output of a test that is known after its teardown.
    item.add_report_section(report.when, "stdout of slowlane network", text + "\n")
