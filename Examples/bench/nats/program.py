"""nats-py and NATS JetStream: messages with and without identifiers."""
import pathlib, sys, time

from bench import EDGE, Effects, Network, compare, fault, free_port, kill, outage, when

DEBIAN = ["nats-server"]
PYPI = ["nats-py==2.16.0"]
VERSION = [sys.executable, "-c", "import importlib.metadata as m; print(m.version('nats-py'))"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=900, seconds=12),
    "lost-ack": fault('TCP server "{\\"stream\\":\\"bench\\"" nth 5 before-match reset'),
    "lost-ack-ids": fault('TCP server "{\\"stream\\":\\"bench\\"" nth 5 before-match reset'),
    "mid-publish": fault('TCP client "PUB bench" nth 5 after-match reset'),
    "stall": fault('TCP server "{\\"stream\\":\\"bench\\"" nth 5 before-match stall'),
    "kill": Network("3g"),
}
COUNT = 12
READ = """import asyncio, nats
async def main():
    client = await nats.connect("nats://127.0.0.1:{port}")
    stream = client.jetstream()
    state = (await stream.stream_info("bench")).state
    for number in range(state.first_seq, state.last_seq + 1):
        print((await stream.get_msg("bench", number)).data.decode())
    await client.close()
asyncio.run(main())"""


def run(bench, condition):
    port = free_port()
    words = ["nats-server", "-a", "127.0.0.1", "-p", port, "-js", "-sd", bench.folder / "data"]
    server = bench.start(*words, port=port)
    bench.must(sys.executable, "-c", f"""import asyncio, nats
async def main():
    client = await nats.connect("nats://127.0.0.1:{port}")
    await client.jetstream().add_stream(name="bench", subjects=["bench"])
    await client.close()
asyncio.run(main())""")
    proxy = bench.proxy(port, CONDITIONS[condition])
    if condition == "kill":
        when(lambda: proxy.bytes() > 1200, lambda: (kill(server), time.sleep(0.5), bench.start(*words, port=port)))
    ids = "ids" if condition in ("lost-ack-ids", "outage", "kill") else "none"
    done = bench.do(sys.executable, pathlib.Path(__file__).with_name("client.py"), proxy.port, COUNT, ids, limit=90)
    found = bench.must(sys.executable, "-c", READ.format(port=port)).split()
    effects = compare([f"m{number}" for number in range(COUNT)], found)
    if done.status is None:
        effects.add("stuck")
    # Whether a publication is under way when the server is killed is chance.
    if "failed" in done.text and condition != "kill":
        effects |= {"error", "retried"}
    # Duplicates with the same Nats-Msg-Id are dropped within the window of the stream (two minutes).
    promised = {"lost", "doubled"} if ids == "ids" else {"lost"}
    return Effects(effects, promised, f"{COUNT} published {'with' if ids == 'ids' else 'without'} identifiers, {len(found)} in the stream; {done.text.count('failed')} failures reported")
