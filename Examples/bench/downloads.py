"""A server of files (nginx, with ranges and entity tags), and the conditions of programs that download one file."""
import os, random

from bench import Effects, Network, fault, free_port, outage, when

SIZE = 400_000
CONDITIONS = {
    "edge": Network("edge"),
    "outage": outage(after=150_000, seconds=12),
    "lost-response": fault("GET /file before-response reset"),
    "mid-body": fault("GET /file mid-response bytes 150000 reset"),
    "mid-body-close": fault("GET /file mid-response bytes 150000 close"),
    # The server replaces the file between the interrupted download and its continuation.
    "changed": fault("GET /file mid-response bytes 150000 reset", "GET /file nth 2 before-request delay 2s"),
    "kill": Network("3g"),
}


def nginx(bench, root):
    port = free_port()
    bench.write("nginx.conf", f"""daemon off;
pid {bench.folder}/nginx.pid;
error_log {bench.report}/nginx-error.log;
worker_processes 1;
events {{ }}
http {{
  access_log {bench.report}/nginx.log;
  client_body_temp_path {bench.folder}/t1; proxy_temp_path {bench.folder}/t2; fastcgi_temp_path {bench.folder}/t3;
  uwsgi_temp_path {bench.folder}/t4; scgi_temp_path {bench.folder}/t5;
  default_type application/octet-stream;
  server {{ listen 127.0.0.1:{port}; root {root}; autoindex on; }}
}}
""")
    # The worker of a server that root has started is another user.
    bench.folder.chmod(0o755)
    bench.start("nginx", "-c", bench.folder / "nginx.conf", "-e", bench.report / "nginx-error.log", port=port)
    return port


def download(bench, condition, command, again, promised=frozenset({"mixed", "false success"})):
    """Downloads a file with a command, and continues with another one until it says that it is complete."""
    root = bench.folder / "root"
    root.mkdir()
    old, new = random.Random(1).randbytes(SIZE), random.Random(2).randbytes(SIZE)
    size = SIZE if condition != "edge" else 60_000
    old, new = old[:size], new[:size]
    (root / "file").write_bytes(old)
    os.utime(root / "file", (1_700_000_000, 1_700_000_000))
    server = nginx(bench, root)
    proxy = bench.proxy(server, CONDITIONS[condition])
    url = f"http://127.0.0.1:{proxy.port}/file"
    out = bench.folder / "out"
    out.mkdir()
    if condition == "changed":
        # The change happens as soon as the fault has fired, before a program repeats the request.
        changed = when(lambda: proxy.fired, lambda: ((root / "new").write_bytes(new), (root / "new").rename(root / "file")))
    if condition == "kill":
        when(lambda: proxy.bytes() > 150_000, lambda: bench.kill_command())
    effects, attempts = set(), 1
    done = bench.do(*command, url, cwd=out, limit=120)
    if condition == "changed":
        changed()
    first = done
    if done.status is None and condition != "kill":
        effects.add("stuck")
    if not done.ok and condition != "kill":
        effects.add("error")
    while not done.ok and attempts < 4:
        attempts += 1
        done = bench.do(*again, url, cwd=out, limit=120)
    if not done.ok:
        effects.add("stuck")
    log = (bench.report / "nginx.log").read_text().splitlines()
    if len(log) > 1:
        effects.add("retried")
    path = out / "file"
    data = path.read_bytes() if path.exists() else b""
    wanted = new if condition == "changed" else old
    if done.ok and data != wanted and not (condition == "changed" and data == old):
        effects.add("mixed" if len(data) >= len(wanted) else "false success")
    if data == old and condition == "changed":
        kind = "the old file"
    else:
        kind = "right" if data == wanted else "two versions mixed" if data[:150_000] == old[:150_000] and len(data) == size else f"{len(data)} B"
    return Effects(effects, set(promised), f"status {first.status}, {attempts} runs, {len(log)} requests; the file is {kind}")
