"""apt-get update and download from a repository of one package, without root."""
import hashlib, random

import downloads
from bench import EDGE, Effects, Network, fault, outage, when

DEBIAN = ["apt", "dpkg-dev", "nginx-light"]
VERSION = ["apt-get", "--version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=150_000, seconds=12),
    "lost-response": fault("GET *.deb before-response reset"),
    "mid-body": fault("GET *.deb mid-response bytes 150000 reset"),
    "mid-body-close": fault("GET *.deb mid-response bytes 150000 close"),
    "index": fault("GET *Packages mid-response reset"),
    "changed": fault("GET *.deb mid-response bytes 150000 reset", "GET *.deb nth 2 before-request delay 2s"),
    "kill": Network("3g"),
}


def run(bench, condition):
    root = bench.folder / "root"
    root.mkdir()

    def build(seed):
        tree = bench.folder / f"tree{seed}"
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text("Package: bench\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@test>\nDescription: bench\n")
        (tree / "data").write_bytes(random.Random(seed).randbytes(40_000 if condition == "edge" else 300_000))
        bench.must("dpkg-deb", "-b", "--root-owner-group", "-Znone", tree, root / "bench_1.0_all.deb")
        data = (root / "bench_1.0_all.deb").read_bytes()
        text = (f"Package: bench\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@test>\nDescription: bench\nFilename: ./bench_1.0_all.deb\n"
                f"Size: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n")
        (root / "Packages").write_text(text)
        return data

    data = build(1)
    server = downloads.nginx(bench, root)
    proxy = bench.proxy(server, CONDITIONS[condition])
    state = bench.folder / "apt"
    for name in ["lists/partial", "archives/partial", "etc/apt.conf.d", "etc/preferences.d", "etc/trusted.gpg.d"]:
        (state / name).mkdir(parents=True)
    (state / "status").write_text("")
    (state / "sources.list").write_text(f"deb [trusted=yes] http://127.0.0.1:{proxy.port}/ ./\n")
    bench.write("apt.conf", f"""Dir::State "{state}"; Dir::State::Lists "{state}/lists"; Dir::State::status "{state}/status";
Dir::Cache "{state}"; Dir::Cache::archives "{state}/archives"; Dir::Etc "{state}/etc"; Dir::Etc::sourcelist "{state}/sources.list";
Dir::Etc::sourceparts "-"; APT::Sandbox::User ""; Acquire::Languages "none"; Acquire::Retries "3"; APT::Architecture "amd64";
Acquire::http::Timeout "30";
""")
    environment = {"APT_CONFIG": str(bench.folder / "apt.conf")}
    effects = set()
    update = bench.do("apt-get", "update", env=environment, limit=120)
    if not update.ok or "Err:" in update.text and condition == "index":
        effects.add("error")
    out = bench.folder / "out"
    out.mkdir()
    words = ["apt-get", "download", "-q", "bench"]
    if condition == "kill":
        when(lambda: proxy.bytes() > 100_000, lambda: bench.kill_command())
    if condition == "changed":
        changed = when(lambda: proxy.fired, lambda: build(2))
    first = done = bench.do(*words, env=environment, cwd=out, limit=120)
    if condition == "changed":
        changed()
    proxy.heal()
    if not first.ok and condition != "kill":
        effects.add("error")
    if first.status is None:
        effects.add("stuck")
    if not done.ok:
        bench.do("apt-get", "update", env=environment)
        done = bench.do(*words, env=environment, cwd=out)
    if not done.ok:
        effects.add("stuck")
    path = out / "bench_1.0_all.deb"
    versions = [data, (root / "bench_1.0_all.deb").read_bytes()]
    if done.ok and (not path.exists() or path.read_bytes() not in versions):
        effects.add("mixed")
    log = [line for line in (bench.report / "nginx.log").read_text().splitlines() if ".deb" in line]
    if len(log) > 1:
        effects.add("retried")
    error = [line for line in first.text.splitlines() if line.startswith("E:")]
    return Effects(effects, {"mixed", "false success"}, f"first run: {'ok' if first.ok else '; '.join(error)[:110] or 'killed'}; {len(log)} requests of the package")
