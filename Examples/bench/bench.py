"""What the programs of the bench share: real servers and clients on free ports of the loopback interface, a proxy between them,
and the comparison of what a user did with what both ends hold.

A program is a folder with `program.py`, which has

    VERSION            a command that prints the version, as a list of words
    CONDITIONS         names of conditions with their networks (`Network`)
    run(bench, name)   starts the servers and the client, does what a user does, and returns `Effects`

and `expected.md`, whose table has a row for each condition. An effect that the documentation of the program excludes breaks a
promise; other harmful effects have no promise; without harmful effects the condition passes.
"""
import contextlib, dataclasses, os, pathlib, pwd, queue, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time

# Effects that harm a user. `error` is a message about a failure, and `retried` a further attempt: neither does.
HARMFUL = ["lost", "doubled", "resurrected", "overwritten", "mixed", "stuck", "storm", "not retried", "false success"]
HARMLESS = ["error", "retried", "slow"]


@dataclasses.dataclass
class Network:
    """The network of a condition: a profile, fault rules, and an outage after a number of bytes."""
    profile: str = ""
    faults: tuple = ()
    outage: float = 0
    after: int = 0


EDGE = Network("edge")


def outage(after=2000, seconds=10.0, profile="3g"):
    """Returns a network with an outage that begins when a number of bytes has passed."""
    return Network(profile, outage=seconds, after=after)


def fault(*rules, profile=""):
    """Returns a network with faults."""
    return Network(profile, faults=rules)


@dataclasses.dataclass
class Effects:
    """What a run has shown: words of HARMFUL and HARMLESS, the effects that the documentation excludes, and a sentence."""
    effects: set
    promised: set
    seen: str = ""

    @property
    def verdict(self):
        harm = {e for e in self.effects if e in HARMFUL}
        return "broken promise" if harm & self.promised else "no promise" if harm else "pass"

    @property
    def text(self):
        return ", ".join(e for e in HARMFUL + HARMLESS if e in self.effects) or "none"


@dataclasses.dataclass
class Done:
    """A command that has ended, or that its limit has ended (`status` is then `None`)."""
    status: int | None
    text: str
    seconds: float

    @property
    def ok(self):
        return self.status == 0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(test, seconds=20.0, pause=0.05):
    """Waits until a test is true. Returns whether it is."""
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True


def identity(user):
    """Returns the arguments with which a process runs as another user; none for `None`."""
    return dict(user=user, group=pwd.getpwnam(user).pw_gid, extra_groups=[]) if user else {}


def is_open(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


def compare(wanted, found):
    """Returns the effects by which `found` differs from `wanted`: lists of what a user has stored, in any order."""
    effects = set()
    for item in set(wanted) | set(found):
        if found.count(item) > wanted.count(item):
            effects.add("doubled" if item in wanted else "resurrected")
        if found.count(item) < wanted.count(item):
            effects.add("lost")
    return effects


class Proxy:
    """A running `slowlane proxy`."""

    def __init__(self, bench, upstream, network, name):
        self.log = bench.report / f"{name}.log"
        words = [bench.slowlane, "proxy", "--listen", "127.0.0.1:0", "--upstream", str(upstream), "--seed", "1"]
        words += ["--har", str(bench.report / f"{name}.har"), "--grace", "0", "--exit-with-parent"]
        if network.profile:
            words += ["--profile", network.profile]
        for rule in network.faults:
            words += ["--fault", rule]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(self.log, "w"), text=True,
            start_new_session=True)
        bench.processes.append(self.process)
        self.lines = queue.Queue()
        self.lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.port = int(re.search(r":(\d+) ->", self.lines.get(timeout=30)).group(1))
        except (queue.Empty, AttributeError, TypeError):
            raise RuntimeError(f"the proxy did not start; see {self.log}")
        self.before_heal = 0
        # Packets lost before the outage, and whether the outage has lost any.
        self.lost_before, self.outage_hit = None, False
        if network.outage:
            threading.Thread(target=self._outage, args=(network,), daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put("")

    def say(self, command):
        """Sends a command to the proxy. Returns its reply."""
        with self.lock:
            try:
                self.process.stdin.write(command + "\n")
                self.process.stdin.flush()
                return self.lines.get(timeout=30)
            except (OSError, queue.Empty):
                return ""

    def bytes(self):
        """Returns the bytes that have passed in both directions."""
        units = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
        found = re.findall(r"([\d.]+) (B|kB|MB|GB) (?:down|up)", self.say("status"))
        return sum(float(count) * units[unit] for count, unit in found)

    @property
    def connections(self):
        """The number of connections so far."""
        found = re.search(r"of (\d+) accepted", self.say("status"))
        return int(found.group(1)) if found else 0

    @property
    def fired(self):
        """The number of faults that have fired so far."""
        return self.before_heal + sum(int(n) for n in re.findall(r"fired (\d+)\)", self.say("faults")))

    def _lost(self):
        found = re.search(r"(\d+) packets lost", self.say("status"))
        return int(found.group(1)) if found else 0

    def _record_outage(self):
        if self.lost_before is not None:
            self.outage_hit = self.outage_hit or self._lost() > self.lost_before

    def _outage(self, network):
        if wait_until(lambda: self.bytes() >= network.after or self.process.poll() is not None, 120):
            self.lost_before = self._lost()
            self.say("outage")
            time.sleep(network.outage)
            self._record_outage()
            self.say("end-outage")

    def heal(self):
        """Removes all conditions and faults, as when the network has recovered."""
        self._record_outage()
        self.before_heal = self.fired
        for command in ["end-outage", "fault remove all", "clear"]:
            self.say(command)


class Bench:
    """The servers, clients and files of one run."""

    def __init__(self, slowlane, report):
        self.slowlane = slowlane
        self.report = pathlib.Path(report)
        self.report.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-"))
        self.processes = []
        self.command = None
        self.proxies = []
        self.environment = dict(
            os.environ, HOME=str(self.folder / "home"), LC_ALL="C.UTF-8", TZ="UTC", PYTHONUNBUFFERED="1",
            PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"] + ":/usr/sbin:/sbin")
        for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"]:
            self.environment.pop(name, None)
            self.environment.pop(name.upper(), None)
        (self.folder / "home").mkdir()
        # Servers that refuse to run as root run as this user.
        self.user = "nobody" if os.getuid() == 0 else None

    def proxy(self, upstream, network, name="link"):
        proxy = Proxy(self, upstream, network, name)
        self.proxies.append(proxy)
        return proxy

    def start(self, *words, port=None, cwd=None, env=None, name=None, seconds=30, user=None):
        """Starts a server, and waits until it listens on `port`."""
        log = open(self.report / f"{name or pathlib.Path(str(words[0])).name}.log", "a")
        process = subprocess.Popen(
            [str(w) for w in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=cwd or self.folder,
            env=dict(self.environment, **(env or {})), start_new_session=True, **identity(user))
        self.processes.append(process)
        if port and not wait_until(lambda: is_open(port) or process.poll() is not None, seconds) or process.poll():
            raise RuntimeError(f"{words[0]} did not start; see {log.name}")
        return process

    def do(self, *words, limit=60, cwd=None, env=None, input=None, user=None):
        """Runs a command of a user, for at most `limit` seconds."""
        started = time.monotonic()
        process = subprocess.Popen(
            [str(w) for w in words], stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd or self.folder, text=True, errors="replace",
            env=dict(self.environment, **(env or {})), start_new_session=True, **identity(user))
        self.processes.append(process)
        self.command = process
        try:
            text, _ = process.communicate(input, timeout=limit)
            status = process.returncode
        except subprocess.TimeoutExpired:
            kill(process)
            text, status = process.communicate()[0] or "", None
        done = Done(status, text, time.monotonic() - started)
        with open(self.report / "commands.log", "a") as log:
            log.write(f"$ {' '.join(str(w) for w in words)}\n{text}[status {status}, {done.seconds:.1f} s]\n")
        return done

    def must(self, *words, **options):
        """Runs a command without which there is no run. Returns its output."""
        done = self.do(*words, **options)
        if not done.ok:
            raise RuntimeError(f"{' '.join(str(w) for w in words)}: status {done.status}\n{done.text[-2000:]}")
        return done.text

    def write(self, path, text, mode=0o644):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
        path.chmod(mode)
        return path

    def kill_command(self):
        """Kills the command of the user that runs."""
        if self.command and self.command.poll() is None:
            kill(self.command)

    def own(self, path):
        """Creates a folder for servers that refuse to run as root."""
        path = self.folder / path
        path.mkdir(parents=True, exist_ok=True)
        if self.user:
            self.folder.chmod(0o755)
            shutil.chown(path, self.user)
        return path

    def close(self):
        links = [proxy.process for proxy in self.proxies]
        for process in reversed(self.processes):
            if process not in links:
                kill(process)
        # The proxies complete their HAR files.
        for proxy in self.proxies:
            proxy.say("quit")
            with contextlib.suppress(subprocess.TimeoutExpired):
                proxy.process.wait(5)
            kill(proxy.process)
        shutil.rmtree(self.folder, ignore_errors=True)


def kill(process, number=signal.SIGKILL):
    """Kills a process with its children, and waits for it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)


def when(test, action, seconds=60):
    """Does something on a thread when a test is true. Returns a function that waits for its end."""
    def run():
        if wait_until(test, seconds, 0.02):
            action()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return lambda: thread.join(seconds)
