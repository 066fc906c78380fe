"""Mercurial: push and pull over HTTP with `hg serve`."""
import random

from bench import EDGE, Effects, fault, free_port, kill, outage, when

DEBIAN = ["mercurial"]
VERSION = ["hg", "--version", "-q"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=60_000, seconds=10),
    "lost-response": fault("POST * before-response reset"),
    "mid-push": fault("POST * mid-request reset"),
    "mid-pull": fault("GET * nth 3 mid-response reset"),
    "kill-server": EDGE,
}


def run(bench, condition):
    bench.write("home/.hgrc", "[ui]\nusername=Ada\n[web]\npush_ssl=false\nallow_push=*\n")
    bench.must("hg", "init", "server")
    port = free_port()

    def serve():
        return bench.start("hg", "serve", "-R", "server", "-a", "127.0.0.1", "-p", port, port=port, name="hg-serve")

    server = serve()

    def commit(folder, text, size):
        (bench.folder / folder / text).write_bytes(random.Random(text).randbytes(size))
        bench.must("hg", "commit", "-A", "-q", "-m", text, cwd=bench.folder / folder)

    bench.must("hg", "clone", "-q", "server", "work")
    commit("work", "one", 1000)
    bench.must("hg", "push", "-q", cwd=bench.folder / "work")
    bench.must("hg", "clone", "-q", "server", "other")
    proxy = bench.proxy(port, CONDITIONS[condition])
    url = f"http://127.0.0.1:{proxy.port}/"
    if condition == "mid-pull":
        commit("other", "two", 150_000)
        bench.must("hg", "push", "-q", cwd=bench.folder / "other")
        words = ["hg", "pull", url]
    else:
        commit("work", "two", 60_000 if condition == "edge" else 150_000)
        words = ["hg", "push", url]
    effects = set()
    if condition == "kill-server":
        when(lambda: proxy.bytes() > 40_000, lambda: kill(server))
    first = bench.do(*words, cwd=bench.folder / "work", limit=90)
    if condition == "kill-server":
        serve()
    if first.status is None:
        effects.add("stuck")
    proxy.heal()
    second = first
    for _ in range(3):
        if second.ok:
            break
        effects |= {"error", "retried"}
        second = bench.do(*words, cwd=bench.folder / "work")
        if second.status == 1 and "no changes found" in second.text:
            break
    else:
        effects.add("stuck")
    for folder in ["server", "work"]:
        log = bench.must("hg", "log", "-T", "{desc}\n", cwd=bench.folder / folder).split()
        if sorted(log) != ["one", "two"]:
            effects.add("lost" if len(log) < 2 else "doubled")
        if not bench.do("hg", "verify", "-q", cwd=bench.folder / folder).ok:
            effects.add("mixed")
    recovery = "; 'hg recover' needed" if "recover" in second.text else ""
    error = [line for line in first.text.splitlines() if "abort" in line or "error" in line]
    return Effects(effects, {"lost", "doubled", "mixed"}, f"{'; '.join(error)[:120] or 'ok'}; second attempt: {'ok' if second.ok else second.text.strip().splitlines()[-1][:80]}{recovery}")
