"""The process `slowlane server` of a pytest process, and calls of its HTTP API."""
import atexit
import importlib.metadata
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request


class NetworkError(Exception):
    """A call that the server refused, or a server that could not be started."""


# The shell that starts the server holds the reading end of a pipe whose writing end only this process has. The pipe ends with this
# process, even if SIGKILL ends it; the shell then kills the server. The server has no state to save.
_SUPERVISOR = '"$@" </dev/null & server=$!; exec >/dev/null; read -r _; kill -9 "$server" 2>/dev/null; wait "$server"'

_START_SECONDS = 30
_CALL_SECONDS = 30
# The sockets of a process that is killed can end before its output does.
_END_SECONDS = 1


def _installed_program():
    """Returns the path of the program that the distribution slowlane-proxy has installed; None without it."""
    try:
        files = importlib.metadata.files("slowlane-proxy") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if file.name == "slowlane"), None)


def find_program(configured, source, folder):
    """Returns the path of the program.

    `configured` is a path (relative to `folder`) or a name on PATH that `source` gave; empty means the program of the distribution
    slowlane-proxy, or `slowlane` on PATH.
    """
    name = configured or _installed_program() or "slowlane"
    path = os.path.join(str(folder), os.path.expanduser(name)) if "/" in name else shutil.which(name)
    if path and os.access(path, os.X_OK) and os.path.isfile(path):
        return path
    place = "'%s' (%s)" % (name, source) if configured else "'slowlane' on PATH"
    raise NetworkError(
        "cannot find the program %s; install slowlane-proxy, or build it with 'swift build -c release --product slowlane' and give its path with "
        "--slowlane-program=PATH, 'slowlane_program' in the ini file, or the environment variable SLOWLANE_PROGRAM" % place)


class Server:
    """A running `slowlane server` on a port of its own."""

    def __init__(self, program):
        self.program = program
        self._owner = os.getpid()
        self._errors = tempfile.TemporaryFile()
        environment = dict(os.environ, LOG_LEVEL="warning")
        try:
            # A session of its own: Ctrl-C in the terminal ends pytest first, which still needs the server.
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SUPERVISOR, "slowlane-supervisor", program, "server", "--host", "127.0.0.1", "--port", "0"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment, start_new_session=True)
        except OSError as error:
            raise NetworkError("cannot start '%s': %s" % (program, error)) from error
        atexit.register(self.stop)
        line = self._first_line()
        found = re.search(r"listening on (http://\S+)", line)
        if not found:
            raise NetworkError("'%s server' did not start: %s" % (program, self.stop() or "its first line was '%s'" % line))
        self.url = found.group(1)
        # No proxies: `http_proxy` in the environment is not for a server on the loopback address.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def _first_line(self):
        """Returns the first line of output; the part that has arrived if the program ends or is silent for too long."""
        output, text = self._process.stdout, b""
        deadline = time.monotonic() + _START_SECONDS
        while b"\n" not in text:
            rest = deadline - time.monotonic()
            if rest <= 0 or not select.select([output], [], [], rest)[0]:
                break
            more = os.read(output.fileno(), 4096)
            if not more:
                break
            text += more
        return text.decode("utf-8", "replace").strip()

    @property
    def is_running(self):
        """Whether the server can be used by this process. Its output ends with it."""
        return self._runs_for(0)

    def _runs_for(self, seconds):
        """Returns whether the server can be used by this process and does not end within `seconds`."""
        if self._process is None or self._owner != os.getpid():
            return False
        readable, _, _ = select.select([self._process.stdout], [], [], seconds)
        return not readable or bool(os.read(self._process.stdout.fileno(), 4096))

    def stop(self):
        """Stops the server and returns the end of its error output."""
        process, self._process = self._process, None
        atexit.unregister(self.stop)
        # A child process made by fork() must not stop the server of its parent.
        if process is None or self._owner != os.getpid():
            return ""
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2000))
        text = self._errors.read().decode("utf-8", "replace").strip()
        self._errors.close()
        # Its own status only if it had ended before; otherwise that of the signal.
        status = process.returncode
        ending = "" if status in (-9, 137) else "exit status %d" % status
        return "; ".join(part for part in (ending, text) if part)

    def call(self, method, path, body=None, warnings=None):
        """Returns the response to a request, decoded from JSON; throws a NetworkError with the server's text.

        Warnings of the response are errors, or are appended to the list `warnings`.
        """
        __tracebackhide__ = True
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers={"User-Agent": "slowlane-pytest"})
        try:
            with self._opener.open(request, timeout=_CALL_SECONDS) as response:
                text, found = response.read(), response.headers.get_all("Warning") or []
        except urllib.error.HTTPError as error:
            raise _refusal(method, path, error) from None
        except OSError as error:
            ended = "" if self._runs_for(_END_SECONDS) else "; the server has ended: " + (self.stop() or "no error output")
            raise NetworkError("%s %s at %s failed: %s%s" % (method, path, self.url, error, ended)) from error
        found = [re.sub(r'^\d+ \S+ "(.*)"$', r"\1", line) for line in found]
        if warnings is not None:
            warnings += found
        elif found:
            # A misspelt field has no effect, so the test would not test what it states.
            raise NetworkError("; ".join(found))
        return json.loads(text) if text else None


def _refusal(method, path, error):
    try:
        text = json.loads(error.read())["error"]
    except (ValueError, KeyError, TypeError, OSError):
        text = "no error text"
    refusal = NetworkError("%s (%s %s: status %d)" % (text, method, path, error.code))
    refusal.status = error.code
    return refusal
