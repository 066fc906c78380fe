"""rsync against a daemon: an upload that updates two files, or a download; the user repeats a command that has failed."""
import os, random, time

from bench import EDGE, Effects, Network, compare, fault, free_port, outage, wait_until, when

DEBIAN = ["rsync"]
VERSION = ["rsync", "--version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=20_000, seconds=10),
    "no-module": fault('TCP server "@RSYNCD: OK" before-match reset'),
    "mid-upload": fault("TCP client mid-stream bytes 60000 reset"),
    "mid-download": fault("TCP server mid-stream bytes 60000 reset"),
    "partial": fault("TCP client mid-stream bytes 60000 reset"),
    # The daemon has all data: what it sends after the end of the last file is lost.
    "lost-end": fault('TCP server "\\x00" after "END-OF-LAST-FILE" before-match reset'),
    "stall": fault("TCP client mid-stream bytes 60000 stall"),
    "timeout": fault("TCP client mid-stream bytes 60000 stall both"),
    "kill": Network("3g"),
}
SIZE = {"edge": 12_000}
WITHOUT_END = ["stall", "timeout"]


def run(bench, condition):
    local, remote = bench.folder / "local", bench.folder / "remote"
    size = SIZE.get(condition, 100_000)
    data = {name: random.Random(name).randbytes(size) for name in ["a", "b", "new"]}
    data["new"] += b"END-OF-LAST-FILE"
    old = {name: random.Random("old " + name).randbytes(size) for name in ["a", "b"]}
    for folder in [local, remote]:
        folder.mkdir()
    source, target = (remote, local) if condition == "mid-download" else (local, remote)
    for folder, files in [(source, data), (target, old)]:
        for name, content in files.items():
            (folder / name).write_bytes(content)
            if files is old:
                os.utime(folder / name, (1_000_000_000, 1_000_000_000))
    port = free_port()
    config = bench.folder / "rsyncd.conf"
    config.write_text(f"use chroot = no\nuid = {os.getuid()}\ngid = {os.getgid()}\n[store]\npath = {remote}\nread only = no\n")
    bench.start("rsync", "--daemon", "--no-detach", "--address=127.0.0.1", f"--port={port}", f"--config={config}", port=port, name="rsyncd")
    proxy = bench.proxy(port, CONDITIONS[condition])
    module = f"rsync://127.0.0.1:{proxy.port}/store/"
    words = ["rsync", "-rt"] + (["--partial"] if condition == "partial" else []) + (["--timeout=5"] if condition == "timeout" else [])
    words += [module, f"{local}/"] if source == remote else [f"{local}/", module]

    def mixed():
        return any((target / name).exists() and (target / name).read_bytes() not in (content, old.get(name)) for name, content in data.items())

    if condition == "kill":
        when(lambda: proxy.bytes() > 120_000, lambda: bench.kill_command())
    effects = set()
    limit = 30 if condition in WITHOUT_END else 90
    first = bench.do(*words, limit=limit)
    time.sleep(2)                                           # the daemon notices the end of the connection
    torn = mixed()                                          # what another program reads now
    if first.ok and any((target / name).read_bytes() != content for name, content in data.items()):
        effects.add("false success")
    if first.status is None:
        effects.add("stuck")
    elif not first.ok and condition != "kill":
        effects.add("error")
    proxy.heal()
    done = first
    for attempt in range(3):
        if done.ok:
            break
        effects.add("retried")
        done = bench.do(*words, limit=60)
    # After `heal` the proxy still delivers what the killed client had sent, at the old rate.
    wait_until(lambda: not any(path.name.startswith(".") for path in target.iterdir()), 15)
    if torn or mixed():
        effects.add("mixed")
    if not done.ok:
        effects.add("stuck")
    names = [path.name for path in target.iterdir()]
    effects |= compare(list(data), [name for name in names if not name.startswith(".") and (target / name).read_bytes() == data[name]])
    left = len([name for name in names if name.startswith(".")])
    error = [line for line in first.text.splitlines() if "rror" in line]
    seen = "ok" if first.ok else f"no end after {limit} s" if first.status is None else "killed" if condition == "kill" else error[0].partition(" at ")[0][:90]
    return Effects(effects, {"mixed", "lost", "false success"} if condition != "partial" else {"lost", "false success"},
                   f"first run: {seen}; after it {'a file is neither old nor new' if torn else 'each file is old or new'}; later runs: {'ok' if done.ok else 'error'}; temporary files left: {left}")
