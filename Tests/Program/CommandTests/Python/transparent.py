"""Connections that nftables redirects to a forward proxy, in a network namespace of their own (unshare -n). The argument is
the program. Prints a line for each case: its name and 'ok', or what was wrong."""
import socket, subprocess, sys, threading, time

# Connections from CLIENT are redirected, those of the proxy come from other addresses. LOOP is redirected for all.
SERVER, CLIENT, LOOP, PORT = "10.9.0.1", "10.9.0.2", "10.9.0.9", 9000
SERVER6, CLIENT6 = "fd09::1", "fd09::2"
RULES = f"""
table inet slowlane {{
    chain output {{
        type nat hook output priority -100; policy accept;
        ip saddr {CLIENT} meta l4proto tcp redirect to :{PORT}
        ip6 saddr {CLIENT6} meta l4proto tcp redirect to :{PORT}
        ip daddr {LOOP} meta l4proto tcp redirect to :{PORT}
    }}
}}
"""


def run(*words, **options):
    subprocess.run(words, check=True, **options)


def serve(host):
    listener = socket.create_server((host, 8000), family=socket.AF_INET6 if ":" in host else socket.AF_INET)

    def echo(s):
        try:
            while data := s.recv(65536):
                s.sendall(data)
            s.sendall(b"end")
        except ConnectionError:
            pass  # A case has ended early.
        s.close()

    def accept():
        while True:
            threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def connect(address, source=None):
    s = socket.create_connection(address, timeout=20, source_address=(source, 0) if source else None)
    s.settimeout(20)
    return s


def exchange(s, size=300_000):
    """Sends bytes and a FIN; returns whether the echo and its end arrive."""
    sent = bytes(i * 31 & 0xFF for i in range(size))
    threading.Thread(target=lambda: (s.sendall(sent), s.shutdown(socket.SHUT_WR)), daemon=True).start()
    received = b""
    while data := s.recv(65536):
        received += data
    return received == sent + b"end"


def ends(address, source=None):
    """Returns whether a connection is closed or reset, which connect may report already, before it has carried anything."""
    try:
        return connect(address, source).recv(1) == b""
    except ConnectionResetError:
        return True


class Proxy:
    def __init__(self, program, *options):
        words = [program, "proxy", "--forward", "--listen", f"[::]:{PORT}", "--allow", "192.0.2.1", "--until-eof"]
        self.process = subprocess.Popen(
            words + list(options), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while "listening on" not in (line := self.process.stdout.readline()):
            assert line, "the proxy did not start"

    def command(self, text):
        """Returns the lines up to the reply to a command."""
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        lines = []
        while not (lines and lines[-1].startswith(("ok", "error"))):
            line = self.process.stdout.readline()
            assert line, "the proxy has ended"
            lines.append(line.rstrip())
        return lines

    def stop(self):
        self.process.stdin.close()
        return self.process.wait(30)


def cases(program):
    proxy = Proxy(program, "--transparent")
    yield "ipv4", exchange(connect((SERVER, 8000), CLIENT))
    yield "ipv6", exchange(connect((SERVER6, 8000), CLIENT6))
    hosts = "\n".join(proxy.command("hosts"))
    yield "the original destinations are counted", f"{SERVER}:8000" in hosts and f"[{SERVER6}]:8000" in hosts or hosts
    s = connect(("127.0.0.1", PORT))
    s.sendall(f"CONNECT {SERVER}:8000 HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    yield "a client that is not redirected negotiates", s.recv(12) == b"HTTP/1.1 200"
    s = connect((CLIENT, PORT), CLIENT)
    s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    yield "a redirected client of the proxy itself negotiates", s.recv(12) == b"HTTP/1.1 200"
    yield "metadata services are refused", ends(("169.254.169.254", 80), CLIENT)
    yield "a closed port is refused", ends((SERVER, 8001), CLIENT)
    start = time.monotonic()
    yield "a loop ends", ends((LOOP, 80)) and time.monotonic() - start < 10
    status = "\n".join(proxy.command("status"))
    yield "the proxy works after the loop", exchange(connect((SERVER, 8000), CLIENT)) or status
    yield "the proxy stops", proxy.stop() == 0

    proxy = Proxy(program, "--transparent", "--delay", "200ms")
    start = time.monotonic()
    s = connect((SERVER, 8000), CLIENT)
    s.sendall(b"x")
    yield "the link's conditions apply", s.recv(1) == b"x" and time.monotonic() - start >= 0.8
    proxy.stop()

    proxy = Proxy(program)
    s = connect((SERVER, 8000), CLIENT)
    s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    yield "without --transparent a redirected client negotiates", s.recv(12) == b"HTTP/1.1 200"
    proxy.stop()


run("ip", "link", "set", "lo", "up")
for address in (SERVER, CLIENT, "169.254.1.1"):
    run("ip", "address", "add", address + "/32", "dev", "lo")
for address in (SERVER6, CLIENT6):
    run("ip", "address", "add", address + "/128", "dev", "lo", "nodad")
# So that the kernel has a route before the rule applies.
for network in ("10.9.0.0/24", "169.254.0.0/16"):
    run("ip", "route", "add", network, "dev", "lo", "scope", "link")
run("nft", "-f", "-", input=RULES, text=True)
for host in (SERVER, SERVER6):
    serve(host)
failed = False
for name, result in cases(sys.argv[1]):
    print(name, "ok" if result is True else f"FAILED ({result})", flush=True)
    failed |= result is not True
sys.exit(failed)
