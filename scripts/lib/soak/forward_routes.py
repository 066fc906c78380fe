"""The ways from a client to an origin for scripts/soak forward: direct, through Slowlane, through other proxies."""
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

from forward_wire import TIME_MAX, Reader


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port), TIME_MAX)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Refused(Exception):
    """The proxy has refused the tunnel; the text is its reply."""


def http_connect(connection, port):
    connection.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (port, port))
    line, _ = Reader(OneByOne(connection)).head()
    if line.split(b" ")[1] != b"200":
        raise Refused(line.decode("latin-1"))


def socks5(connection, port, name=b""):
    reader = Reader(OneByOne(connection))
    connection.sendall(b"\x05\x01\x00")
    if reader.exactly(2) != b"\x05\x00":
        raise Refused("methods")
    address = b"\x03" + bytes([len(name)]) + name if name else b"\x01" + socket.inet_aton("127.0.0.1")
    connection.sendall(b"\x05\x01\x00" + address + struct.pack("!H", port))
    reply = reader.exactly(4)
    reader.exactly({1: 4, 4: 16}[reply[3]] + 2)
    if reply[1]:
        raise Refused("SOCKS 5 code %d" % reply[1])


def socks4a(connection, port):
    connection.sendall(b"\x04\x01" + struct.pack("!H", port) + b"\x00\x00\x00\x01user\x00localhost\x00")
    reply = Reader(OneByOne(connection)).exactly(8)
    if reply[1] != 90:
        raise Refused("SOCKS 4 code %d" % reply[1])


class OneByOne:
    """Reads single bytes, so that none of what follows is read."""

    def __init__(self, connection):
        self.connection = connection

    def recv(self, _):
        return self.connection.recv(1)


class Route:
    """A way to origins. `kind`: `direct`, `tunnel` (bytes pass unchanged) or `absolute` (requests in absolute form)."""

    def __init__(self, name, kind, port=0, negotiate=None):
        self.name, self.kind, self.port, self.negotiate = name, kind, port, negotiate
        self.is_ours = name.startswith("slowlane")
        # Whether a link with a queue is on the way.
        self.has_link = self.is_ours and "," in name

    def connect(self, origin_port):
        if self.kind == "direct":
            return connect(origin_port)
        connection = connect(self.port)
        if self.negotiate:
            try:
                self.negotiate(connection, origin_port)
            except Exception:
                connection.close()
                raise
        return connection


class Slowlane:
    """The program as a forward proxy, with commands on its standard input."""

    def __init__(self, program, *options, **variables):
        self.process = subprocess.Popen([program, "proxy", "--forward", "--listen", "127.0.0.1:0", *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, **variables))
        line = self.process.stdout.readline()
        found = re.search(r"listening on \S+?:(\d+) ", line)
        if not found:
            raise RuntimeError("slowlane: %s" % (line + self.process.stdout.read()))
        self.port = int(found.group(1))

    def command(self, line):
        """Returns the reply; lines that tell of other things are skipped."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        while True:
            reply = self.process.stdout.readline()
            if not reply or reply.startswith(("ok", "error")):
                return reply.strip()

    def descriptors(self, pipes=False):
        """Returns the number of open files without pipes, or of pipes, of which the fast path keeps some for reuse."""
        folder = "/proc/%d/fd" % self.process.pid
        found = 0
        for name in os.listdir(folder):
            try:
                found += os.readlink(os.path.join(folder, name)).startswith("pipe:") == pipes
            except OSError:
                pass
        return found

    def memory(self):
        """Returns VmRSS in KiB."""
        with open("/proc/%d/status" % self.process.pid) as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


class Peers:
    """Other proxies that are installed, each on a port of its own; those that do not start are listed in `missing`."""

    def __init__(self, folder, starts=True):
        self.folder, self.processes, self.missing, self.routes = folder, [], [], []
        if not starts:
            self.missing.append("other proxies")
            return
        os.chmod(folder, 0o777)
        port = free_port()
        if self.start("squid", port, ["squid", "-N", "-f", self.write("squid.conf", """
http_port 127.0.0.1:%d
http_access allow all
cache deny all
pid_filename none
access_log none
cache_log %s/squid.log
cache_store_log none
netdb_filename none
pinger_enable off
coredump_dir %s
visible_hostname soak
shutdown_lifetime 0 seconds
""" % (port, folder, folder))]):
            self.routes += [Route("squid CONNECT", "tunnel", port, http_connect), Route("squid absolute", "absolute", port)]
        port = free_port()
        if self.start("tinyproxy", port, ["tinyproxy", "-d", "-c", self.write("tinyproxy.conf", """
Port %d
Listen 127.0.0.1
Timeout 30
MaxClients 300
Allow 127.0.0.1
LogLevel Error
LogFile "%s/tinyproxy.log"
""" % (port, folder))]):
            self.routes += [Route("tinyproxy CONNECT", "tunnel", port, http_connect), Route("tinyproxy absolute", "absolute", port)]
        port = free_port()
        if self.start("danted", port, ["danted", "-f", self.write("danted.conf", """
logoutput: %s/danted.log
internal: 127.0.0.1 port = %d
external: lo
clientmethod: none
socksmethod: none
user.privileged: %s
user.unprivileged: %s
client pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }
socks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }
""" % (folder, port, self.user(), self.user()))]):
            self.routes.append(Route("dante SOCKS 5", "tunnel", port, socks5))
        port = free_port()
        if self.start("microsocks", port, ["microsocks", "-i", "127.0.0.1", "-p", str(port)]):
            self.routes.append(Route("microsocks SOCKS 5", "tunnel", port, socks5))
        self.start_ssh()

    def user(self):
        import pwd
        return pwd.getpwuid(os.getuid()).pw_name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def start(self, name, port, command):
        path = shutil.which(command[0], path=os.environ["PATH"] + ":/usr/sbin")
        if not path:
            self.missing.append("%s (not installed)" % name)
            return False
        process = subprocess.Popen([path] + command[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        for _ in range(100):
            try:
                connect(port).close()
                return True
            except OSError:
                if process.poll() is not None:
                    break
                time.sleep(0.1)
        self.missing.append("%s (does not start)" % name)
        return False

    def start_ssh(self):
        for name in ("host", "key"):
            if not shutil.which("ssh-keygen"):
                break
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.folder, name)], check=False)
        server, port = free_port(), free_port()
        keys = os.path.join(self.folder, "key.pub")
        config = self.write("sshd.conf", "Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s\nStrictModes no\nPidFile none\n"
                            "PermitRootLogin yes\nUsePAM no\nMaxSessions 500\n" % (server, self.folder, keys))
        os.makedirs("/run/sshd", exist_ok=True) if os.getuid() == 0 else None
        if self.start("sshd", server, ["sshd", "-D", "-f", config]) and self.start("ssh -D", port, [
                "ssh", "-N", "-D", "127.0.0.1:%d" % port, "-p", str(server), "-i", os.path.join(self.folder, "key"), "-F", "none",
                "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=%s/known" % self.folder, "127.0.0.1"]):
            self.routes.append(Route("ssh -D SOCKS 5", "tunnel", port, socks5))

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
