"""rclone move, which uploads files to a WebDAV server (rclone serve webdav) and deletes the local ones."""
from bench import EDGE, Effects, Network, compare, fault, free_port, outage, when

DEBIAN = ["rclone"]
VERSION = ["rclone", "version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=30_000, seconds=12),
    "lost-response": fault("PUT * before-response reset"),
    "mid-body": fault("PUT * mid-request bytes 20000 reset"),
    "stall": fault("PUT * before-response stall"),
    "listing": fault("PROPFIND * mid-response reset"),
    "kill": Network("3g"),
}


def run(bench, condition):
    local, remote = bench.folder / "local", bench.folder / "remote"
    for folder in [local, remote]:
        folder.mkdir()
    files = {name: name * (10_000 if condition == "edge" else 60_000) for name in ["a", "b", "c"]}
    for name, text in files.items():
        (local / name).write_text(text)
    port = free_port()
    bench.start("rclone", "serve", "webdav", "--addr", f"127.0.0.1:{port}", remote, port=port, name="server")
    proxy = bench.proxy(port, CONDITIONS[condition])
    words = ["rclone", "move", local, f":webdav,url='http://127.0.0.1:{proxy.port}',vendor='other':", "--retries", "1", "--timeout", "20s"]
    if condition == "kill":
        when(lambda: proxy.bytes() > 60_000, lambda: bench.kill_command())
    effects = set()
    first = done = bench.do(*words, limit=120)
    if not first.ok:
        proxy.heal()
        effects |= {"retried"} | ({"error"} if condition != "kill" else set())
        done = bench.do(*words)
    if first.status is None or not done.ok:
        effects.add("stuck")
    found = {path.name: path.read_text() for path in remote.iterdir()}
    effects |= compare(sorted(files), sorted(found))
    # A local file must not be deleted before the server has all of it.
    kept = {path.name for path in local.iterdir()}
    for name, text in files.items():
        if found.get(name) != text and name not in kept:
            effects.add("lost")
        elif found.get(name, text) != text and done.ok:
            effects.add("false success")
    error = [line for line in first.text.splitlines() if "ERROR" in line]
    return Effects(effects, {"lost", "false success"}, f"first run: {'ok' if first.ok else 'killed' if condition == 'kill' else (error or ['error'])[0][20:120].strip()}; files of the server: {' '.join(sorted(found))}, local: {' '.join(sorted(kept)) or 'none'}")
