"""A user of redis-py with the default options: increments a counter and appends to a list."""
import sys, time

import redis

port, count, pause = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
client = redis.Redis(port=port)
failed = 0
for number in range(count):
    for call in [lambda: client.incr("counter"), lambda: client.rpush("list", f"item-{number}")]:
        try:
            call()
        except redis.RedisError as error:
            failed += 1
            print(f"failed {number}: {type(error).__name__}: {error}", flush=True)
    time.sleep(pause)
print(f"calls {2 * count} failed {failed}", flush=True)
