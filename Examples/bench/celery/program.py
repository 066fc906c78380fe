"""Celery with Redis as the broker: the worker is behind the bad network."""
import pathlib, sys, time

from bench import EDGE, Effects, Network, compare, fault, free_port, kill, outage, wait_until

DEBIAN = ["redis-server"]
PYPI = ["celery==5.7.0", "redis==8.1.0", "packaging==26.4"]
VERSION = ["celery", "--version"]
DELIVERED = 'TCP server "$6\\r\\ncelery\\r\\n$" after "BRPOP" nth 4 before-match reset'
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=8000, seconds=12),
    # The reply with the task is lost: Redis has removed the task from the list, and the worker has not got it.
    "lost-task": fault(DELIVERED),
    "lost-task-late": fault(DELIVERED),
    # The acknowledgement of the task does not reach the server.
    "lost-ack": fault('TCP client "ZREM" nth 4 before-match reset'),
    "kill": Network(),
}
COUNT = 10


def run(bench, condition):
    port, output = free_port(), bench.folder / "output"
    bench.start("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", bench.folder, "--save", "", port=port)
    proxy = bench.proxy(port, CONDITIONS[condition])
    folder = pathlib.Path(__file__).parent
    late = "1" if condition in ("lost-task-late", "kill") else "0"
    environment = {"BROKER": str(proxy.port), "OUTPUT": str(output), "LATE": late, "PYTHONDONTWRITEBYTECODE": "1"}

    def work():
        return bench.start(
            sys.executable, "-m", "celery", "-A", "tasks", "worker", "-P", "solo", "-l", "INFO", "--without-gossip", "--without-mingle",
            cwd=folder, env=environment, name="worker")

    worker = work()
    log = bench.report / "worker.log"
    wait_until(lambda: "ready." in log.read_text(errors="replace"), 60)
    sender = bench.do(
        sys.executable, "-c", f"import tasks, time\nfor n in range({COUNT}):\n    tasks.add.delay(n)\n    time.sleep(0.3)",
        cwd=folder, env=dict(environment, BROKER=str(port)))
    found = lambda: output.read_text().split() if output.exists() else []
    if condition == "kill":
        wait_until(lambda: len(found()) >= 4, 20)
        kill(worker)
        worker = work()
    wanted = [str(n) for n in range(COUNT)]
    wait_until(lambda: set(found()) >= set(wanted), 40)
    time.sleep(1)
    effects = compare(wanted, found())
    if not sender.ok:
        effects.add("error")
    return Effects(effects, set(), f"{COUNT} tasks sent, {len(found())} executed, missing: {', '.join(n for n in wanted if n not in found()) or 'none'}; {'late' if late == '1' else 'early'} acknowledgement")
