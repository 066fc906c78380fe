"""Unison over its own socket protocol, two-way sync of a folder."""
import random

from bench import EDGE, Effects, Network, compare, fault, free_port, kill, outage, when

DEBIAN = ["unison"]
VERSION = ["unison", "-version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=4000, seconds=12),
    "reset-early": fault("TCP server mid-stream bytes 300 reset"),
    "mid-upload": fault("TCP client mid-stream bytes 30000 reset"),
    "mid-download": fault("TCP server mid-stream bytes 30000 reset"),
    "stall": fault("TCP server mid-stream bytes 30000 stall"),
    "kill": Network("3g"),
}


def run(bench, condition):
    local, remote = bench.folder / "local", bench.folder / "remote"
    for folder in [local, remote]:
        folder.mkdir()
        for name in ["a", "b", "c"]:
            (folder / name).write_text(name * 500)
    port = free_port()
    # The server's archives are beside the client's: one user, two roots.

    def serve():
        return bench.start("unison", "-socket", port, port=port, name="server", env={"UNISON": str(bench.folder / "state-server")})

    server = serve()
    proxy = bench.proxy(port, Network(CONDITIONS[condition].profile))
    environment = {"UNISON": str(bench.folder / "state")}
    words = ["unison", local, f"socket://127.0.0.1:{proxy.port}/{remote}", "-batch", "-auto", "-ui", "text", "-terse"]
    words += ["-confirmbigdel=false", "-contactquietly"]
    bench.do(*words, env=environment, limit=90)
    data = {name: random.Random(name).randbytes(12_000 if condition == "edge" else 60_000) for name in ["new-local", "new-remote"]}
    (local / "new-local").write_bytes(data["new-local"])
    (remote / "new-remote").write_bytes(data["new-remote"])
    (local / "b").unlink()
    (remote / "c").unlink()
    link = bench.proxy(port, CONDITIONS[condition], "second") if CONDITIONS[condition].faults or CONDITIONS[condition].outage else proxy
    words[2] = f"socket://127.0.0.1:{link.port}/{remote}"
    if condition == "kill":
        start = link.bytes()
        when(lambda: link.bytes() > start + 40_000, lambda: bench.kill_command())
    effects = set()
    first = bench.do(*words, env=environment, limit=60)
    link.heal()
    if first.status is None:
        effects.add("stuck")
    elif not first.ok and condition != "kill":
        effects.add("error")
    done = first
    healed = ""
    for attempt in range(4):
        if done.ok:
            break
        effects.add("retried")
        done = bench.do(*words, env=environment, limit=20)
        if done.status is None:
            # The server does not send the rest. Whether a new server process does, the next attempt shows.
            effects.add("stuck")
            healed = " until the server is restarted"
            kill(server)
            server = serve()
    if not done.ok:
        effects.add("stuck")
        healed = ""
    ends = [sorted(path.name for path in folder.iterdir() if not path.name.startswith(".unison")) for folder in [local, remote]]
    for found in ends:
        effects |= compare(["a", "new-local", "new-remote"], found)
    for folder in [local, remote]:
        if any((folder / name).exists() and (folder / name).read_bytes() != content for name, content in data.items()):
            effects.add("mixed")
    error = [line for line in first.text.splitlines() if "rror" in line or "Lost" in line]
    return Effects(effects, {"lost", "mixed", "overwritten"}, f"first run: {'ok' if first.ok else 'no end after 60 s' if first.status is None else 'killed' if condition == 'kill' else '; '.join(error)[:90]}; later runs: {'ok' if done.ok and not healed else 'no end' + healed}; files: {' '.join(ends[0])} / {' '.join(ends[1])}")
