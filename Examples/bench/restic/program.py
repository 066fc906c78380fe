"""restic, a backup to a REST server (rclone serve restic)."""
import random

from bench import EDGE, Effects, Network, fault, free_port, outage, when

DEBIAN = ["restic", "rclone"]
VERSION = ["restic", "version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=150_000, seconds=12),
    "lost-response": fault("POST */data/* before-response reset"),
    "lost-snapshot": fault("POST */snapshots/* before-response reset"),
    "mid-body": fault("POST */data/* mid-request bytes 50000 reset"),
    "kill": Network("3g"),
}


def run(bench, condition):
    (bench.folder / "server").mkdir()
    source = bench.folder / "source"
    source.mkdir()
    files = {f"f{n}": random.Random(n).randbytes(30_000 if condition == "edge" else 100_000) for n in range(2)}
    for name, data in files.items():
        (source / name).write_bytes(data)
    port = free_port()
    bench.start("rclone", "serve", "restic", "--addr", f"127.0.0.1:{port}", bench.folder / "server", port=port)
    proxy = bench.proxy(port, CONDITIONS[condition])
    environment = {"RESTIC_PASSWORD": "x", "RESTIC_CACHE_DIR": str(bench.folder / "cache")}
    direct = ["restic", "-r", f"rest:http://127.0.0.1:{port}/a/"]
    bench.must(*direct, "init", env=environment)
    words = ["restic", "-r", f"rest:http://127.0.0.1:{proxy.port}/a/", "backup", "source"]
    if condition == "kill":
        when(lambda: proxy.bytes() > 120_000, lambda: bench.kill_command())
    first = done = bench.do(*words, env=environment, limit=120)
    effects = set()
    if first.status is None:
        effects.add("stuck")
    if not first.ok:
        proxy.heal()
        effects |= {"retried"} | ({"error"} if condition != "kill" else set())
        done = bench.do(*words, env=environment)
        if not done.ok and "locked" in done.text:
            bench.must(*direct, "unlock", env=environment)
            done = bench.do(*words, env=environment)
    if not done.ok:
        effects.add("stuck")
    if not bench.do(*direct, "check", "--read-data", "--no-lock", env=environment).ok:
        effects.add("mixed")
    snapshots = bench.must(*direct, "snapshots", "--no-lock", "--json", env=environment).count('"short_id"')
    if done.ok:
        bench.must(*direct, "restore", "latest", "--no-lock", "--target", "restored", env=environment)
        found = {path.name: path.read_bytes() for path in (bench.folder / "restored").rglob("f*") if path.is_file()}
        if found != files:
            effects.add("false success")
    if snapshots > 1:
        effects.add("doubled")
    retries = "; it says that it repeats" if "retrying" in first.text else ""
    return Effects(effects, {"false success", "mixed", "lost"}, f"first run: {'ok' if first.ok else 'killed' if condition == 'kill' else 'error'}{retries}; {snapshots} snapshots, the restored files are {'right' if 'false success' not in effects else 'wrong'}")
