"""What the plugin prints and leaves behind, in pytest runs of their own."""
import os
import re
import subprocess
import time

import pytest

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")


@pytest.fixture
def run(pytester, slowlane_upstream, pytestconfig, monkeypatch):
    """Runs pytest on a file in a folder of its own."""
    from slowlane_pytest import _state
    program = pytestconfig.stash[_state].program()

    def run(tests, *arguments, program=program):
        pytester.makeini("[pytest]\npythonpath = %s\nslowlane_program = %s\n" % (SOURCES, program))
        pytester.makeconftest('pytest_plugins = ["slowlane_pytest"]')
        pytester.makepyfile(test_inner="import pytest\n" + tests)
        # An option or variable of this run would win over the ini file.
        monkeypatch.delenv("SLOWLANE_PROGRAM", raising=False)
        # Other plugins of the environment only take time.
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        return pytester.runpytest_subprocess("-p", "xdist", "--slowlane-upstream", slowlane_upstream, *arguments)

    return run


FAILING = """
@pytest.mark.network("very-bad-network")
def test_fails(network):
    with network.offline():
        pass
    assert network.seed == 0
"""


def test_a_failure_shows_the_seed_the_changes_and_how_to_repeat(run):
    tests = FAILING + """
def test_passes(network):
    pass

@pytest.mark.network("edgy")
def test_unknown_profile(network):
    pass

@pytest.mark.network("edge")
def test_without_network():
    pass

@pytest.mark.network(upstream="127.0.0.1:70000")
@pytest.mark.network("edge")
class TestNearest:
    @pytest.mark.network("3g", upstream="127.0.0.1:9")
    def test_wins(self, network, make_network):
        assert network.conditions["profile"] == "3g" and network.upstream == "127.0.0.1:9"
        assert make_network("127.0.0.1:9").seed != network.seed
"""
    result = run(tests)
    result.assert_outcomes(failed=1, passed=3, errors=1, warnings=1)
    text = result.stdout.str()
    assert "unknown profile 'edgy'; did you mean 'edge'?" in text
    assert "the marker 'network' has no effect" in text
    assert "link: 100-loss" in text and "restore: very-bad-network" in text
    assert text.count("slowlane network") == 1
    session = re.search("slowlane: seed ([0-9]+)", text).group(1)
    seed = re.search("very-bad-network, seed ([0-9]+)", text).group(1)
    assert "repeat with: pytest test_inner.py::test_fails --slowlane-seed %s" % session in text
    assert re.search(r"assert %s == 0" % seed, text)
    # The same seed in a run of one test, in a worker process.
    again = run(FAILING, "test_inner.py::test_fails", "--slowlane-seed", session, "-n", "1").stdout.str()
    assert "very-bad-network, seed %s" % seed in again


def test_a_fault_that_does_not_fire_fails_the_test(run):
    result = run("""
def test_unused(network):
    network.fault("POST /notes committed cut")

def test_optional(network):
    network.fault("POST /notes committed cut", must_fire=False)
    with network.fault("POST /notes committed cut") as fault:
        fault.remove()

def test_unused_block(network):
    with network.fault("POST /notes committed cut"):
        pass

def test_other_failure(network):
    network.fault("POST /notes committed cut")
    assert not "reached"

def test_misspelt(network):
    network.fault("POST /notes comitted cut")
""")
    result.assert_outcomes(failed=4, passed=1)
    text = result.stdout.str()
    # The summary repeats messages in full if the variable CI is set.
    message = "^(?:E .*|network: )the fault 'POST /notes committed cut' did not fire; 0 requests matched"
    assert len(re.findall(message, text, re.MULTILINE)) == 2
    assert "assert not 'reached'" in text and "did you mean 'committed'" in text


def test_a_missing_program_says_what_to_do(run):
    result = run(FAILING, program="./nothing/slowlane")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*cannot find the program './nothing/slowlane'*swift build*--slowlane-program*"])
    failing = run(FAILING, program="/bin/false")
    failing.stdout.fnmatch_lines(["*'/bin/false server' did not start: exit status 1*"])


def test_a_killed_worker_leaves_no_process(run, pytester):
    run("""
import os, signal
from slowlane_pytest import _state

@pytest.mark.parametrize("number", range(2))
def test_ends_its_worker(network, request, number):
    server = request.config.stash[_state].server
    with open("group-%d" % number, "w") as file:
        file.write("%d" % server._process.pid)
    os.kill(os.getpid(), signal.SIGKILL)
""", "-n", "2")
    groups = [int((pytester.path / ("group-%d" % number)).read_text()) for number in range(2)]
    deadline = time.monotonic() + 10
    while processes(groups) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes(groups) == []


def processes(groups):
    """Returns the running processes of process groups; zombies wait for their parent only."""
    lines = subprocess.run(["ps", "-A", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if int(line.split()[0]) in groups and not line.split()[1].startswith("Z")]


def test_a_server_that_ended_is_replaced_in_the_next_test(run):
    result = run("""
import os, signal
from slowlane_pytest import _state

def test_first(network, request):
    os.killpg(request.config.stash[_state].server._process.pid, signal.SIGKILL)
    network.link("edge")

def test_second(network):
    network.link("edge")
""")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*the server has ended*"])


def test_the_command_that_repeats_a_test_has_its_path_from_the_working_directory(run, pytester, monkeypatch):
    monkeypatch.chdir(pytester.mkdir("elsewhere"))
    result = run("""
@pytest.mark.network("edge")
def test_fails(network):
    assert False
""", "../test_inner.py")
    result.assert_outcomes(failed=1)
    assert "repeat with: pytest ../test_inner.py::test_fails --slowlane-seed " in result.stdout.str()
