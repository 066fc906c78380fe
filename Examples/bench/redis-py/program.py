"""redis-py with its default options, and Redis."""
import pathlib, re, sys, time

from bench import EDGE, Effects, compare, fault, free_port, kill, outage, when

DEBIAN = ["redis-server"]
PYPI = ["redis==8.1.0"]
VERSION = [sys.executable, "-c", "import redis; print(redis.__version__)"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=900, seconds=20),
    "lost-response": fault('TCP server ":" after "INCR" nth 5 before-match reset'),
    "lost-list": fault('TCP server ":" after "RPUSH" nth 5 before-match reset'),
    "mid-request": fault('TCP client "RPUSH" nth 5 after-match reset'),
    "stall": fault('TCP server ":" after "INCR" nth 5 before-match stall'),
    "kill": EDGE,
}
COUNT = 20


def run(bench, condition):
    port = free_port()

    def server():
        return bench.start(
            "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", bench.folder, "--save", "", "--appendonly", "yes",
            "--appendfsync", "always", port=port)

    process = server()
    proxy = bench.proxy(port, CONDITIONS[condition])
    if condition == "kill":
        when(lambda: proxy.bytes() > 600, lambda: (kill(process), time.sleep(0.3), server()))
    client = pathlib.Path(__file__).with_name("client.py")
    done = bench.do(sys.executable, client, proxy.port, COUNT, 0.05, limit=90)

    def ask(*words):
        return bench.must("redis-cli", "-p", port, *words).split()

    failed = len(re.findall("^failed", done.text, re.M))
    effects = {"error"} if failed else set()
    if done.status is None:
        effects.add("stuck")
        return Effects(effects, set(), f"no end after {done.seconds:.0f} s; the counter is {ask('get', 'counter')[0]}")
    counter, items = int(ask("get", "counter")[0]), ask("lrange", "list", "0", "-1")
    # A call that reports a failure may have been executed.
    if counter > COUNT:
        effects.add("doubled")
    wrong = compare([f"item-{n}" for n in range(COUNT)], items)
    effects |= wrong - {"lost"} if failed else wrong
    if not failed and counter < COUNT:
        effects.add("lost")
    # Redis promises that a write that it has acknowledged survives a crash with `appendfsync always`.
    return Effects(effects, {"lost"}, f"{COUNT} INCR, the counter is {counter}; {COUNT} RPUSH, {len(items)} items; {failed} calls failed")
