#!/usr/bin/env python3
"""Times transfers through a live `slowlane proxy`, each on a new connection, in the output format of `slowlane model`.

  workload.py BINARY --name LABEL --netem-down WORDS --netem-up WORDS --plan ITEMS --trials N [--seed S]

Starts its own server and proxy. The items are those of `slowlane model --plan`; the proxy's commands `outage` and `end-outage` start
and end outages. Connections are closed with a RST, so that no trial affects the next.
"""
import argparse
import json
import multiprocessing
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time

HEADER = 100
TIMEOUT = 150


def now():
    return time.monotonic_ns()


def span(start, end):
    return round((end - start) / 1e6, 3)


def take(connection, count):
    """Reads `count` bytes. Returns the times of the first and of the last."""
    first = last = None
    while count > 0:
        piece = connection.recv(min(count, 1 << 18))
        last = now()
        first = first or last
        if not piece:
            raise EOFError("the stream has ended")
        count -= len(piece)
    return first, last


# The first 100 bytes select the server's behaviour (send, take, respond, drip), followed by two numbers.
def serve(connection):
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = b""
        while len(head) < HEADER:
            piece = connection.recv(HEADER - len(head))
            if not piece:
                return
            head += piece
        word, first, second = head.decode().split()
        first, second = int(first), int(second)
        if word == "send":
            connection.sendall(bytes(first))
        elif word == "take":
            take(connection, first - HEADER)
            connection.sendall(b"!")
        elif word == "respond":
            for number in range(first):
                take(connection, second - (0 if number else HEADER))
                connection.sendall(bytes(second))
        elif word == "drip":
            start = time.monotonic()
            for number in range(first):
                time.sleep(max(0, start + number * 0.1 - time.monotonic()))
                connection.sendall(bytes(second))
        connection.settimeout(TIMEOUT)
        while connection.recv(4096):
            pass
    except (OSError, EOFError, ValueError):
        pass
    finally:
        connection.close()


def server(port):
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    port.send(listener.getsockname()[1])
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


class Proxy:
    def __init__(self, a, upstream):
        self.process = subprocess.Popen(
            [a.binary, "proxy", "--upstream", str(upstream), "--quiet", "--netem-down", a.netem_down, "--netem-up",
             a.netem_up, "--seed", str(a.seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.process.stdout.readline()).group(1))

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        reply = self.process.stdout.readline()
        if not reply.startswith("ok"):
            raise RuntimeError(reply)
        return now()


class Outage:
    """An outage of `length` seconds, `start` seconds from now."""

    def __init__(self, proxy, start, length):
        self.proxy, self.length, self.ended_at = proxy, length, None
        self.begin = time.monotonic() + start
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        time.sleep(max(0, self.begin - time.monotonic()))
        self.proxy.say("outage")
        time.sleep(max(0, self.begin + self.length - time.monotonic()))
        self.ended_at = self.proxy.say("end-outage")

    def since(self, moment):
        self.thread.join()
        return max(0.0, span(self.ended_at, moment))


def header(word, first=0, second=0):
    return ("%s %d %d" % (word, first, second)).encode().ljust(HEADER)


def handshake(proxy, rng):
    """Returns the time of the modelled handshake: half the time to the first byte of a response. A client's connect()
    through a proxy returns before it, so that actions after connect() start later by this time."""
    probes = [trial(proxy, "ttfb", rng) for _ in range(3)]
    return min(probe["first"] for probe in probes if probe["ok"]) / 2000


def trial(proxy, item, rng, connecting=0.0):
    parts = item.split(":")
    kind = parts[0]
    numbers = [float(part) for part in parts[1:]]
    result = {"k": kind}
    if numbers:
        result["n"] = int(numbers[0])
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.settimeout(TIMEOUT)
    outage = None
    start = now()
    try:
        connection.connect(("127.0.0.1", proxy.port))
        begun = now()
        result["connect"] = span(start, begun)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if kind in ("ttfb", "down"):
            count = 200 if kind == "ttfb" else result["n"]
            connection.sendall(header("send", count))
            first, last = take(connection, count)
            result.update(first=span(begun, first), done=span(begun, last), total=span(start, last))
        elif kind == "up":
            count = result["n"]
            connection.sendall(header("take", count) + bytes(count - HEADER))
            _, last = take(connection, 1)
            result.update(done=span(begun, last), total=span(start, last))
        elif kind == "pp":
            size = int(numbers[1]) if len(numbers) > 1 else 200
            result["ex"] = []
            for number in range(result["n"]):
                requested = now()
                connection.sendall((header("respond", result["n"], size) if number == 0 else b"").ljust(size))
                _, last = take(connection, size)
                result["ex"].append(span(requested, last))
            result.update(done=span(begun, last), total=span(start, last))
        elif kind == "oreq":
            connection.sendall(header("respond", 2, 200).ljust(200))
            take(connection, 200)
            outage = Outage(proxy, 1.0, result["n"])
            time.sleep(1.3 + 0.3 * rng.random())
            requested = now()
            connection.sendall(bytes(200))
            _, last = take(connection, 200)
            result.update(done=span(requested, last), resume=outage.since(last))
        elif kind == "obulk":
            count = int(numbers[1])
            outage = Outage(proxy, connecting + (numbers[2] if len(numbers) > 2 else 2.0) + 0.1 * rng.random(), result["n"])
            connection.sendall(header("send", count))
            while count > 0:
                piece = connection.recv(1 << 18)
                last = now()
                if not piece:
                    raise EOFError("the stream has ended")
                count -= len(piece)
                if "resume" not in result and outage.ended_at and last >= outage.ended_at:
                    result["resume"] = outage.since(last)
            result["after" if "resume" in result else "early"] = outage.since(last)
        elif kind == "odrip":
            size = 1000
            connection.sendall(header("drip", 10 * (60 + 3 * result["n"]), size))
            got = 0
            while True:
                piece = connection.recv(1 << 18)
                last = now()
                if not piece:
                    raise EOFError("the stream has ended")
                got += len(piece)
                if outage is None:
                    beginning = last
                    outage = Outage(proxy, 2 + 0.1 * rng.random(), result["n"])
                if outage.ended_at and last >= outage.ended_at:
                    result.setdefault("resume", outage.since(last))
                    if got >= size * ((last - beginning) // 100_000_000):
                        result["caught"] = outage.since(last)
                        break
                    if last > outage.ended_at + max(20, 2 * result["n"]) * 1e9:
                        break  # the link is slower than the drip
        else:
            raise ValueError("unknown item " + item)
        result["ok"] = 1
    except (OSError, EOFError) as error:
        result.update(ok=0, err=str(error))
    finally:
        if outage:
            outage.thread.join()
        connection.close()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    for name in ("name", "netem-down", "netem-up", "plan"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gap", type=float, default=0.1, help="mean seconds between trials")
    a = parser.parse_args()
    rng = random.Random(a.seed)
    mine, theirs = multiprocessing.Pipe()
    serving = multiprocessing.Process(target=server, args=(theirs,), daemon=True)
    serving.start()
    proxy = Proxy(a, mine.recv())
    try:
        connecting = handshake(proxy, rng) if "obulk" in a.plan else 0.0
        for number in range(a.trials):
            for item in a.plan.split(","):
                result = trial(proxy, item, rng, connecting)
                result.update(p=a.name, rep=number)
                print(json.dumps(result), flush=True)
                time.sleep(a.gap * (0.5 + rng.random()))
    finally:
        proxy.process.kill()
        serving.terminate()


if __name__ == "__main__":
    main()
