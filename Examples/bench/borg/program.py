"""BorgBackup, a backup to `borg serve` over a connection that stands for SSH."""
import random, sys

from bench import EDGE, Effects, Network, fault, free_port, outage, when

DEBIAN = ["borgbackup"]
VERSION = ["borg", "--version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=150_000, seconds=12),
    # The request is executed, and its response is lost.
    "lost-response": fault('TCP client "commit" after-match bytes 40 reset'),
    "mid-body": fault("TCP client mid-stream bytes 100000 reset"),
    "stall": fault('TCP server mid-stream bytes 100 stall'),
    "kill": Network("3g"),
}
# What BORG_RSH starts in place of ssh: it connects standard input and output with the proxy.
SHELL = '''import os, select, socket, sys
s = socket.create_connection(("127.0.0.1", int(os.environ["BENCH_PORT"])))
inputs = [0, s]
while s in inputs:
    for ready in select.select(inputs, [], [])[0]:
        try:
            data = os.read(0, 65536) if ready == 0 else s.recv(65536)
        except OSError:
            sys.exit(255)
        if ready == 0:
            if data:
                s.sendall(data)
            else:
                inputs.remove(0)
                s.shutdown(socket.SHUT_WR)
        elif data:
            os.write(1, data)
        else:
            inputs.remove(s)
'''
SERVER = '''import socket, subprocess, sys, threading
def serve(connection):
    process = subprocess.Popen(["borg", "serve", "--restrict-to-path", sys.argv[2]], stdin=connection, stdout=connection)
    connection.close()
    process.wait()
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
'''


def run(bench, condition):
    source = bench.folder / "source"
    source.mkdir()
    files = {f"f{n}": random.Random(n).randbytes(30_000 if condition == "edge" else 100_000) for n in range(2)}
    for name, data in files.items():
        (source / name).write_bytes(data)
    port = free_port()
    bench.write("shell.py", SHELL)
    bench.write("server.py", SERVER)
    bench.write("rsh", f"#!/bin/sh\nexec {sys.executable} {bench.folder}/shell.py\n", 0o755)
    bench.start(sys.executable, "server.py", port, bench.folder, port=port, name="server")
    environment = {"BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes", "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes"}
    local = bench.folder / "repository"
    bench.must("borg", "init", "-e", "none", local, env=environment)
    proxy = bench.proxy(port, CONDITIONS[condition])
    environment |= {"BORG_RSH": str(bench.folder / "rsh"), "BENCH_PORT": str(proxy.port)}
    words = ["borg", "create", f"ssh://bench{local}::one", "source"]
    if condition == "kill":
        when(lambda: proxy.bytes() > 120_000, lambda: bench.kill_command())
    first = done = bench.do(*words, env=environment, limit=60)
    effects = set()
    if first.status is None:
        effects.add("stuck")
    if not first.ok:
        proxy.heal()
        effects |= {"retried"} | ({"error"} if condition not in ("kill", "stall") else set())
        done = bench.do(*words, env=environment)
        if not done.ok and "Failed to create/acquire the lock" in done.text:
            bench.must("borg", "break-lock", local, env=environment)
            done = bench.do(*words, env=environment)
    existed = not done.ok and "already exists" in done.text
    if not done.ok and not existed:
        effects.add("stuck")
    if not bench.do("borg", "check", "--verify-data", local, env=environment).ok:
        effects.add("mixed")
    out = bench.folder / "restored"
    out.mkdir()
    bench.do("borg", "extract", f"{local}::one", cwd=out, env=environment)
    found = {path.name: path.read_bytes() for path in out.rglob("f*") if path.is_file()}
    if found != files:
        effects.add("false success" if done.ok else "lost")
    error = first.text.strip().splitlines()[-1][:70] if first.text.strip() else ""
    return Effects(effects, {"false success", "mixed", "lost"}, f"first run: {'ok' if first.ok else 'no end after 60 s' if first.status is None else 'killed' if condition == 'kill' else error}; second: {'the archive exists already' if existed else 'ok' if done.ok else 'error'}; the restored files are {'right' if found == files else 'wrong'}")
