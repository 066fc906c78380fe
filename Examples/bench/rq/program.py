"""RQ (Redis Queue): the worker is behind the bad network."""
import pathlib, sys, time

from bench import EDGE, Effects, Network, compare, fault, free_port, kill, outage, wait_until

DEBIAN = ["redis-server"]
PYPI = ["rq==3.0.0"]
VERSION = ["rq", "--version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=8000, seconds=12),
    # The reply with the identifier of the job (36 bytes) is lost: Redis has moved the job to the intermediate queue.
    "lost-job": fault('TCP server "$36" after "LMOVE" nth 4 before-match reset'),
    "lost-finish": fault('TCP server ":" after "rq:finished" nth 2 before-match reset'),
    "kill": Network(),
}


def run(bench, condition):
    count = 3 if condition in ("edge", "outage") else 10
    port, output = free_port(), bench.folder / "output"
    bench.start("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", bench.folder, "--save", "", port=port)
    proxy = bench.proxy(port, CONDITIONS[condition])
    folder = pathlib.Path(__file__).parent
    environment = {"OUTPUT": str(output), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder)}

    def work():
        return bench.start(
            "rq", "worker", "-u", f"redis://127.0.0.1:{proxy.port}", "--worker-class", "rq.worker.SimpleWorker", cwd=folder,
            env=environment, name="worker")

    worker = work()
    log = bench.report / "worker.log"
    wait_until(lambda: "istening on" in log.read_text(errors="replace"), 60)
    bench.must(
        sys.executable, "-c", f"import jobs, redis, rq, time\nqueue = rq.Queue(connection=redis.Redis(port={port}))\n"
        f"for n in range({count}):\n    queue.enqueue(jobs.add, n)\n    time.sleep(0.3)", cwd=folder, env=environment)
    found = lambda: output.read_text().split() if output.exists() else []
    if condition == "kill":
        wait_until(lambda: len(found()) >= 4, 30)
        kill(worker)
        worker = work()
    wanted = [str(n) for n in range(count)]
    wait_until(lambda: set(found()) >= set(wanted), 90 if count == 3 else 30)
    time.sleep(1)
    effects = compare(wanted, found())
    # A job that Redis still has in the intermediate queue is not lost; a worker cleans this queue after minutes.
    kept = [int(bench.must("redis-cli", "-p", port, *words)) for words in [["llen", "rq:queue:default:intermediate"], ["zcard", "rq:failed:default"]]]
    if "lost" in effects and any(kept):
        effects = effects - {"lost"} | {"not retried"}
    return Effects(effects, set(), f"{count} jobs, {len(found())} executed, missing: {', '.join(n for n in wanted if n not in found()) or 'none'}; intermediate queue: {kept[0]}, failed: {kept[1]}")
