"""Repeats the behaviours of docs/explanation/real-programs.md without Slowlane: with packet filters in a network namespace of its
own, or by stopping and killing processes at the point where a network would fail. `scripts/real-programs --confirm` starts it.
"""
import os, pathlib, random, signal, subprocess, sys, threading, time

import downloads, mail
from bench import Bench, free_port, kill, wait_until, when

HERE = pathlib.Path(__file__).parent


def drop(port, text):
    """Drops the packets of a server that contain a text. Returns a function that ends it."""
    words = ["OUTPUT", "-p", "tcp", "--sport", str(port), "-m", "string", "--algo", "bm", "--string", text, "-j", "DROP"]
    subprocess.run(["iptables", "-A", *words], check=True)
    return lambda: subprocess.run(["iptables", "-D", *words], check=True)


def redis(bench):
    """The packet with the reply ":5" of Redis is lost until the client gives up. It repeats INCR without being asked to."""
    port = free_port()
    bench.start("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", bench.folder, "--save", "", port=port)
    drop(port, ":5\r\n")
    done = bench.do(sys.executable, "-c", f"import redis\nr = redis.Redis(port={port})\nfor n in range(10): r.incr('counter')\nprint('10 calls, no error')")
    counter = bench.must("redis-cli", "-p", port, "get", "counter").strip()
    return counter == "11", f"{done.text.strip()}; the counter is {counter}"


def celery(bench):
    """The worker is stopped while it waits for a task, and killed before it reads the reply of Redis with the task. Another worker
    waits for longer than the visibility timeout."""
    port, output = free_port(), bench.folder / "output"
    bench.start("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", bench.folder, "--save", "", port=port)
    environment = {"BROKER": str(port), "OUTPUT": str(output), "LATE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-P", "solo", "-l", "INFO", "--without-gossip", "--without-mingle"]
    log = bench.report / "worker.log"

    def work():
        before = log.read_text().count("ready.") if log.exists() else 0
        worker = bench.start(*words, cwd=HERE / "celery", env=environment, name="worker")
        wait_until(lambda: log.read_text(errors="replace").count("ready.") > before, 60)
        time.sleep(2)
        return worker

    def send(number):
        bench.must(sys.executable, "-c", f"import tasks; tasks.add.delay({number})", cwd=HERE / "celery", env=environment)

    def ask(*words, input=None):
        return bench.must("redis-cli", "-p", port, *words, input=input).strip()

    # The message of a task, as Celery has written it.
    send(0)
    message = ask("lindex", "celery", "0")
    ask("del", "celery")
    worker = work()
    for _ in range(20):
        # The worker asks anew each second; in between nobody takes the message.
        os.killpg(worker.pid, signal.SIGSTOP)
        ask("-x", "lpush", "celery", input=message)
        if ask("llen", "celery") == "0":
            break
        ask("del", "celery")
        os.killpg(worker.pid, signal.SIGCONT)
        time.sleep(0.4)
    kill(worker)
    work()
    send(1)
    wait_until(lambda: output.exists(), 30)
    time.sleep(20)
    done = output.read_text().split()
    left = [ask("llen", "celery"), ask("hlen", "unacked")]
    return done == ["1"], f"sent: 0, 1; executed: {', '.join(done)}; in Redis: {left[0]} waiting, {left[1]} not acknowledged"


def wget(bench):
    """The server is killed in the middle of the download, and starts again with another version of the file."""
    root = bench.folder / "root"
    root.mkdir()
    old, new = random.Random(1).randbytes(400_000), random.Random(2).randbytes(400_000)
    (root / "file").write_bytes(old)
    port = downloads.nginx(bench, root)
    kill(bench.processes[-1])
    config = bench.folder / "nginx.conf"
    config.write_text(config.read_text().replace("autoindex on;", "limit_rate 100k;"))
    words = ["nginx", "-c", config, "-e", bench.report / "nginx-error.log"]
    server = bench.start(*words, port=port)

    def replace():
        time.sleep(1.5)
        kill(server)
        (root / "new").write_bytes(new)
        (root / "new").rename(root / "file")
        bench.start(*words, port=port)

    thread = threading.Thread(target=replace)
    thread.start()
    out = bench.folder / "out"
    out.mkdir()
    done = bench.do("wget", "-q", "--retry-connrefused", "--waitretry=1", f"http://127.0.0.1:{port}/file", cwd=out)
    thread.join()
    data = (out / "file").read_bytes()
    same = next((n for n in range(len(data)) if data[n] != old[n]), len(data))
    mixed = done.ok and len(data) == len(old) and data not in (old, new) and data[same + 1:] == new[same + 1:]
    return mixed, f"status {done.status}; {len(data)} B: the first {same} B of the old file, the rest of the new one" if mixed else f"status {done.status}, {len(data)} B"


def unison(bench):
    """The client is killed in the middle of a transfer to a server on a socket."""
    local, remote = bench.folder / "local", bench.folder / "remote"
    for folder in [local, remote]:
        folder.mkdir()
        (folder / "a").write_text("a")
    port = free_port()
    server = bench.start("unison", "-socket", port, port=port, name="server", env={"UNISON": str(bench.folder / "state-server")})
    words = ["unison", local, f"socket://127.0.0.1:{port}/{remote}", "-batch", "-auto", "-ui", "text", "-terse", "-contactquietly"]
    environment = {"UNISON": str(bench.folder / "state")}
    bench.must(*words, env=environment)
    with open(local / "new", "wb") as file:
        for number in range(100):
            file.write(random.Random(number).randbytes(3_000_000))
    temporary = lambda: list(remote.glob(".unison.*"))
    ended = when(lambda: any(path.stat().st_size > 1_000_000 for path in temporary()), bench.kill_command)
    first = bench.do(*words, env=environment)
    ended()
    second = bench.do(*words, env=environment, limit=60)
    kill(server)
    bench.start("unison", "-socket", port, port=port, name="server", env={"UNISON": str(bench.folder / "state-server")})
    third = bench.do(*words, env=environment, limit=60)
    return second.status is None and third.ok, f"killed: {first.status}; next run: {'no end after 60 s' if second.status is None else second.status}; after a restart of the server: {third.status}"


def offlineimap(bench):
    """The packets with the response to APPEND are lost until OfflineIMAP gives up; the next run has a good network."""
    port, server = mail.dovecot(bench)
    local = bench.folder / "local"
    mail.deliver(local / "INBOX", "l1", 4000)
    (bench.folder / "home/.offlineimaprc").write_text(f"""[general]
accounts = a
metadata = {bench.folder}/metadata
socktimeout = 8
[Account a]
localrepository = near
remoterepository = far
[Repository near]
type = Maildir
localfolders = {local}
[Repository far]
type = IMAP
remotehost = 127.0.0.1
remoteport = {port}
remoteuser = ada
remotepass = x
ssl = no
starttls = no
auth_mechanisms = LOGIN
""")
    end = drop(port, "OK [APPENDUID")
    first = bench.do("offlineimap", "-o", "-u", "basic", limit=100)
    end()
    second = bench.do("offlineimap", "-o", "-u", "basic")
    found = mail.subjects(server)
    return found.count("l1") > 1, f"first run: status {first.status}; second: {second.status}; messages on the server: {len(found)} of 1"


STORIES = {"redis-py": redis, "celery": celery, "wget": wget, "unison": unison, "offlineimap": offlineimap}


def main(slowlane, report, names):
    if os.environ.get("BENCH_NAMESPACE") != "1":
        # A namespace with a loopback interface of its own: packet filters affect nothing else.
        words = ["unshare", "-n" if os.getuid() == 0 else "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv]
        os.execvpe("unshare", words, dict(os.environ, BENCH_NAMESPACE="1"))
    failed = 0
    for name in names or STORIES:
        if name not in STORIES:
            continue
        bench = Bench(slowlane, pathlib.Path(report) / "confirm" / name)
        try:
            confirmed, text = STORIES[name](bench)
        except Exception as error:
            confirmed, text = False, f"{type(error).__name__}: {error}"
        finally:
            bench.close()
        failed += not confirmed
        print(f"{name}: {'confirmed' if confirmed else 'NOT CONFIRMED'}: {text}", flush=True)
    return 1 if failed else 0
