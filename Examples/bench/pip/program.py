"""pip install from an index of one package: with and without hashes the installed files are those of the index."""
import hashlib, os, random, sys, zipfile

import downloads
from bench import EDGE, Effects, Network, fault, outage, when

DEBIAN = ["nginx-light"]
VERSION = [sys.executable, "-m", "pip", "--version"]
WHEEL = "bench_package-1.0-py3-none-any.whl"
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=150_000, seconds=12),
    "lost-response": fault(f"GET *{WHEEL} before-response reset"),
    "mid-body": fault(f"GET *{WHEEL} mid-response bytes 150000 reset"),
    "mid-body-close": fault(f"GET *{WHEEL} mid-response bytes 150000 close"),
    "index": fault("GET /simple/* mid-response reset"),
    "kill": Network("3g"),
}


def run(bench, condition):
    root = bench.folder / "root"
    folder = root / "simple/bench-package"
    folder.mkdir(parents=True)
    data = random.Random(1).randbytes(60_000 if condition == "edge" else 300_000)
    with zipfile.ZipFile(root / WHEEL, "w") as wheel:
        wheel.writestr("bench_package/__init__.py", "")
        wheel.writestr("bench_package/data", data)
        wheel.writestr("bench_package-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: bench-package\nVersion: 1.0\n")
        wheel.writestr("bench_package-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("bench_package-1.0.dist-info/RECORD", "bench_package/__init__.py,,\nbench_package/data,,\nbench_package-1.0.dist-info/METADATA,,\nbench_package-1.0.dist-info/WHEEL,,\nbench_package-1.0.dist-info/RECORD,,\n")
    digest = hashlib.sha256((root / WHEEL).read_bytes()).hexdigest()
    (folder / "index.html").write_text(f'<!DOCTYPE html><a href="/{WHEEL}#sha256={digest}">{WHEEL}</a>')
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755)
    server = downloads.nginx(bench, root)
    # nginx serves index.html as a page only with its type.
    proxy = bench.proxy(server, CONDITIONS[condition])
    target = bench.folder / "target"
    words = ["pip", "install", "-q", "--no-cache-dir", "--disable-pip-version-check", "--no-deps", "--target", target, "--index-url", f"http://127.0.0.1:{proxy.port}/simple/", "bench-package"]
    if condition == "kill":
        when(lambda: proxy.bytes() > 100_000, lambda: bench.kill_command())
    effects = set()
    first = done = bench.do(*words, limit=120, env={"PIP_CONFIG_FILE": os.devnull})
    proxy.heal()
    if not first.ok and condition != "kill":
        effects.add("error")
    if first.status is None:
        effects.add("stuck")
    if not done.ok:
        effects.add("retried")
        done = bench.do(*words, env={"PIP_CONFIG_FILE": os.devnull})
    if not done.ok:
        effects.add("stuck")
    path = target / "bench_package/data"
    if done.ok and (not path.exists() or path.read_bytes() != data):
        effects.add("false success")
    log = [line for line in (bench.report / "nginx.log").read_text().splitlines() if WHEEL in line]
    return Effects(effects, {"false success", "mixed"}, f"first run: {'ok' if first.ok else first.text.strip().splitlines()[-1][:90] if first.text.strip() else 'killed'}; {len(log)} requests of the wheel")
