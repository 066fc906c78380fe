#!/usr/bin/env python3
"""Times transfers through a live `slowlane proxy`, a new connection each, and prints what `slowlane model` prints.

  workload.py BINARY --name LABEL --netem-down WORDS --netem-up WORDS --plan ITEMS --trials N [--seed S]

Starts a server and a proxy of its own. The items are those of `slowlane model --plan`; outages are made with the proxy's
commands `cut` and `heal`. Connections are closed by RST, so that nothing of one trial is left for the next.
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
GIVE_UP = 150


def now():
    return time.monotonic_ns()


def span(start, end):
    return round((end - start) / 1e6, 3)


def take(connection, count):
    """Reads `count` bytes; gives the moments of the first and of the last."""
    first = last = None
    while count > 0:
        piece = connection.recv(min(count, 1 << 18))
        last = now()
        first = first or last
        if not piece:
            raise EOFError("the stream has ended")
        count -= len(piece)
    return first, last


# What the server does is said in the first 100 bytes: send, take, answer, drip; numbers after it.
def serve(connection):
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        words = b""
        while len(words) < HEADER:
            piece = connection.recv(HEADER - len(words))
            if not piece:
                return
            words += piece
        word, first, second = words.decode().split()
        first, second = int(first), int(second)
        if word == "send":
            connection.sendall(bytes(first))
        elif word == "take":
            take(connection, first - HEADER)
            connection.sendall(b"!")
        elif word == "answer":
            for number in range(first):
                take(connection, second - (0 if number else HEADER))
                connection.sendall(bytes(second))
        elif word == "drip":
            start = time.monotonic()
            for number in range(first):
                time.sleep(max(0, start + number * 0.1 - time.monotonic()))
                connection.sendall(bytes(second))
        connection.settimeout(GIVE_UP)
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
        answer = self.process.stdout.readline()
        if not answer.startswith("ok"):
            raise RuntimeError(answer)
        return now()


class Outage:
    """Cuts the link `start` seconds from now for `length` seconds."""

    def __init__(self, proxy, start, length):
        self.proxy, self.length, self.healed = proxy, length, None
        self.begin = time.monotonic() + start
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        time.sleep(max(0, self.begin - time.monotonic()))
        self.proxy.say("cut")
        time.sleep(max(0, self.begin + self.length - time.monotonic()))
        self.healed = self.proxy.say("heal")

    def since(self, moment):
        self.thread.join()
        return max(0.0, span(self.healed, moment))


def header(word, first=0, second=0):
    return ("%s %d %d" % (word, first, second)).encode().ljust(HEADER)


def handshake(proxy, chance):
    """How long the modelled handshake takes. A client's connect() through a proxy returns before it: what a kernel's client
    would do after its connect() has to begin so much later. It is half the time to an answer's first byte."""
    probes = [trial(proxy, "ttfb", chance) for _ in range(3)]
    return min(probe["first"] for probe in probes if probe["ok"]) / 2000


def trial(proxy, item, chance, connecting=0.0):
    parts = item.split(":")
    kind = parts[0]
    numbers = [float(part) for part in parts[1:]]
    result = {"k": kind}
    if numbers:
        result["n"] = int(numbers[0])
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.settimeout(GIVE_UP)
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
                asked = now()
                connection.sendall((header("answer", result["n"], size) if number == 0 else b"").ljust(size))
                _, last = take(connection, size)
                result["ex"].append(span(asked, last))
            result.update(done=span(begun, last), total=span(start, last))
        elif kind == "oreq":
            connection.sendall(header("answer", 2, 200).ljust(200))
            take(connection, 200)
            outage = Outage(proxy, 1.0, result["n"])
            time.sleep(1.3 + 0.3 * chance.random())
            asked = now()
            connection.sendall(bytes(200))
            _, last = take(connection, 200)
            result.update(done=span(asked, last), resume=outage.since(last))
        elif kind == "obulk":
            count = int(numbers[1])
            outage = Outage(proxy, connecting + (numbers[2] if len(numbers) > 2 else 2.0) + 0.1 * chance.random(), result["n"])
            connection.sendall(header("send", count))
            while count > 0:
                piece = connection.recv(1 << 18)
                last = now()
                if not piece:
                    raise EOFError("the stream has ended")
                count -= len(piece)
                if "resume" not in result and outage.healed and last >= outage.healed:
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
                    outage = Outage(proxy, 2 + 0.1 * chance.random(), result["n"])
                if outage.healed and last >= outage.healed:
                    result.setdefault("resume", outage.since(last))
                    if got >= size * ((last - beginning) // 100_000_000):
                        result["caught"] = outage.since(last)
                        break
                    if last > outage.healed + max(20, 2 * result["n"]) * 1e9:
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
    chance = random.Random(a.seed)
    mine, theirs = multiprocessing.Pipe()
    serving = multiprocessing.Process(target=server, args=(theirs,), daemon=True)
    serving.start()
    proxy = Proxy(a, mine.recv())
    try:
        connecting = handshake(proxy, chance) if "obulk" in a.plan else 0.0
        for number in range(a.trials):
            for item in a.plan.split(","):
                result = trial(proxy, item, chance, connecting)
                result.update(p=a.name, rep=number)
                print(json.dumps(result), flush=True)
                time.sleep(a.gap * (0.5 + chance.random()))
    finally:
        proxy.process.kill()
        serving.terminate()


if __name__ == "__main__":
    main()
