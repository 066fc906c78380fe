"""What the plugin prints and leaves behind, in pytest runs of their own."""
import os
import re
import shlex
import subprocess
import time
import xml.etree.ElementTree

import pytest

DOCUMENTATION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "how-to", "pytest.md")
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
        return pytester.runpytest_subprocess("-p", "xdist", "--slowlane-upstream=" + slowlane_upstream, *arguments)

    return run


FAILING = """
@pytest.mark.network("very-bad-network")
def test_fails(network):
    with network.outage():
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
    upstream = re.search("-> (127.0.0.1:[0-9]+), very-bad-network", text).group(1)
    command = "python -m pytest test_inner.py::test_fails --slowlane-upstream=%s --slowlane-seed=%s" % (upstream, session)
    assert "repeat with: " + command in text
    assert re.search(r"assert %s == 0" % seed, text)
    # The same seed in a run of one test, in a worker process.
    again = run(FAILING, "test_inner.py::test_fails", "--slowlane-seed=" + session, "-n", "1").stdout.str()
    assert "very-bad-network, seed %s" % seed in again


def test_a_fault_that_does_not_fire_fails_the_test(run):
    result = run("""
def test_unused(network):
    network.fault("POST /notes before-response reset")

def test_optional(network):
    network.fault("POST /notes before-response reset", must_fire=False)
    with network.fault("POST /notes before-response reset") as fault:
        fault.remove()

def test_unused_block(network):
    with network.fault("POST /notes before-response reset"):
        pass

def test_other_failure(network):
    network.fault("POST /notes before-response reset")
    assert not "reached"

def test_misspelt(network):
    network.fault("POST /notes befor-response reset")
""")
    result.assert_outcomes(failed=4, passed=1)
    text = result.stdout.str()
    # The summary repeats messages in full if the variable CI is set.
    message = "^(?:E .*|network: )the fault 'POST /notes before-response reset' did not fire; 0 requests matched"
    assert len(re.findall(message, text, re.MULTILINE)) == 2
    assert "assert not 'reached'" in text and "did you mean 'before-response'" in text


def test_a_failure_shows_the_counts_of_its_faults(run):
    result = run("""
import urllib.request

def test_fails(network):
    network.fault("GET /2 before-request respond 503", must_fire=False)
    with network.fault("GET /3 before-request respond 503") as fault:
        with pytest.raises(OSError):
            urllib.request.urlopen(network.url + "/3")
    assert fault.fired == 1
    fault.check()
    assert not "reached"
""")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "assert not 'reached'" in text
    assert "fault GET /2 before-request respond 503: matched 0, fired 0" in text
    assert re.search(r"s  fault added: GET /3 .*\n.*s  fault removed: GET /3 before-request respond 503 \(matched 1, fired 1\)", text)


def test_the_seed_of_a_run_can_be_a_variable(run, monkeypatch):
    monkeypatch.setenv("SLOWLANE_SEED", "77")
    tests = "def test_seed(network):\n    assert network.session_seed == %d\n"
    run(tests % 77).assert_outcomes(passed=1)
    run(tests % 78, "--slowlane-seed=78").assert_outcomes(passed=1)
    monkeypatch.setenv("SLOWLANE_SEED", "-1")
    result = run(tests % 77)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*SLOWLANE_SEED: '-1' is not a number from 0 to 2^63 - 1*"])


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
    assert "repeat with: python -m pytest ../test_inner.py::test_fails --slowlane-upstream=" in result.stdout.str()


@pytest.fixture
def run_in_project(pytester, slowlane_upstream, pytestconfig, monkeypatch):
    """Runs pytest in a folder with an ini file; the program is in another folder."""
    from slowlane_pytest import _state
    monkeypatch.delenv("SLOWLANE_PROGRAM", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", SOURCES)
    (pytester.mkdir("slowlane") / "slowlane").symlink_to(pytestconfig.stash[_state].program())
    project = pytester.mkdir("project")
    (project / "pytest.ini").write_text("[pytest]\nslowlane_upstream = %s\n" % slowlane_upstream)
    (project / "test_inner.py").write_text("def test_uses_the_network(network):\n    assert network.port\n")
    monkeypatch.chdir(project)

    def run(arguments):
        return pytester.runpytest_subprocess(
            "-p", "slowlane_pytest", *[each.replace(".build/release/slowlane", "../slowlane/slowlane") for each in arguments])

    return run


def documented_arguments():
    """Returns the arguments of the command with which the documentation runs pytest."""
    with open(DOCUMENTATION, encoding="utf-8") as file:
        commands = [line.split()[2:] for line in file if line.startswith("$ pytest --")]
    assert len(commands) == 1
    return commands[0]


def test_the_documented_command_reads_the_ini_file_of_the_working_directory(run_in_project):
    result = run_in_project(documented_arguments())
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["rootdir: */project", "configfile: pytest.ini"])


def test_a_path_of_the_program_that_pytest_takes_for_a_test_is_refused(run_in_project):
    result = run_in_project(["--slowlane-program", ".build/release/slowlane"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*write --slowlane-program=../slowlane/slowlane"])


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "worker"])
def test_a_junit_report_has_seed_network_and_the_command_that_repeats_the_test(run, pytester, slowlane_upstream, workers):
    tests = FAILING + """
def test_passes(network, make_network):
    make_network("127.0.0.1:9", "3g")

def test_without_network():
    pass
"""
    run(tests, "--junitxml=report.xml", "-o", "junit_logging=system-out", *workers).assert_outcomes(failed=1, passed=2)
    cases = {case.get("name"): case for case in xml.etree.ElementTree.parse(pytester.path / "report.xml").iter("testcase")}

    def values(test, name):
        return [each.get("value") for each in cases[test].iter("property") if each.get("name") == "slowlane_" + name]

    seed, = values("test_fails", "seed")
    network, = values("test_fails", "network")
    command, = values("test_fails", "repeat")
    assert "-> %s, very-bad-network, seed " % slowlane_upstream in network
    assert command == "python -m pytest test_inner.py::test_fails --slowlane-upstream=%s --slowlane-seed=%s" % (slowlane_upstream, seed)
    output = cases["test_fails"].find("system-out").text
    assert "network " + network in output and "link: 100-loss" in output and "repeat with: " + command in output
    assert (values("test_passes", "seed"), len(values("test_passes", "network"))) == ([seed], 2)
    assert cases["test_without_network"].find("properties") is None
    again = pytester.runpytest_subprocess(*shlex.split(command)[3:]).stdout.str()
    assert network.rpartition(", ")[2] in again
