"""A user of nats-py: publishes messages to a stream, and repeats a publication that was not acknowledged."""
import asyncio, sys

import nats, nats.errors


async def main(port, count, with_ids):
    client = await nats.connect(f"nats://127.0.0.1:{port}", reconnect_time_wait=0.5, max_reconnect_attempts=100, ping_interval=5)
    stream = client.jetstream(timeout=5)
    for number in range(count):
        headers = {"Nats-Msg-Id": f"m{number}"} if with_ids else None
        for _ in range(20):
            try:
                await stream.publish("bench", f"m{number}".encode(), headers=headers)
                break
            except (nats.errors.Error, asyncio.TimeoutError) as error:
                print(f"failed m{number}: {type(error).__name__}", flush=True)
                await asyncio.sleep(0.5)
    await client.close()


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "ids"))
