"""Mutated negotiations on real sockets for scripts/soak forward."""
import asyncio
import collections
import random
import resource
import socket
import struct
import time

from forward_routes import Slowlane

# The proxy's limit for the negotiation, its limit for connecting (--connect-timeout), and what a busy machine may add.
NEGOTIATION_MAX, CONNECT_MAX, LATE_MAX = 30.0, 10.0, 3.0
CONCURRENT, BATCH = 1500, 50
ORIGIN_IDLE_MAX = 1.0
# The fast path keeps 16 pipes for reuse; the program has a few others.
PIPE_FILES_MAX = 2 * 16 + 8
SLOW_BYTE_TIME = 0.1
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PIECES = [b"\r\n", b"\r\n\r\n", b"\n", b"\0", b"\xff" * 9, b" ", b":", b"\r\nContent-Length: 99999999999999999999", b"\r\nContent-Length: 5",
          b"\r\nTransfer-Encoding: chunked", b"\r\nHost: a\r\nHost: b", b"\r\nConnection: Upgrade\r\nUpgrade: x", b"\r\nExpect: 100-continue",
          b"A" * 70_000, b"\r\nX: " + b"y" * 9_000, b"\x05\x01\x00", b"\x04\x01", b"http://", b"[::1]", b"%25", b"HTTP/1.1", b"\x16\x03\x01\x02\x00\x01"]


def negotiations(port):
    """Returns valid first bytes of clients, each followed by what makes the origin respond."""
    host, tail = b"127.0.0.1:%d" % port, b"GET / HTTP/1.1\r\n\r\n"
    number = struct.pack("!H", port)
    return [
        b"CONNECT " + host + b" HTTP/1.1\r\nHost: " + host + b"\r\nProxy-Connection: Keep-Alive\r\n\r\n" + tail,
        b"CONNECT localhost:%d HTTP/1.0\r\n\r\n" % port + tail,
        b"GET http://" + host + b"/a?b HTTP/1.1\r\nHost: " + host + b"\r\nAccept: */*\r\n\r\n",
        b"POST http://" + host + b"/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345GET http://" + host + b"/ HTTP/1.1\r\n\r\n",
        b"PUT HTTP://localhost:%d HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: X-A, close\r\nX-A: 1\r\n\r\n3;a=b\r\nabc\r\n0\r\nT: 1\r\n\r\n" % port,
        b"OPTIONS http://" + host + b" HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01" + number + tail,
        b"\x05\x02\x00\x02\x05\x01\x00\x03\x09localhost" + number + tail,
        b"\x05\x01\x02\x01\x04user\x04word\x05\x01\x00\x01\x7f\x00\x00\x01" + number + tail,
        b"\x05\x01\x00\x05\x01\x00\x04" + bytes(10) + b"\xff\xff\x7f\x00\x00\x01" + number + tail,
        b"\x04\x01" + number + b"\x7f\x00\x00\x01user\x00" + tail,
        b"\x04\x01" + number + b"\x00\x00\x00\x01\x00localhost\x00" + tail,
    ]


LOCAL = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HEAD /proxy.pac HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(60)]


def mutate(rnd, data, others):
    data = bytearray(data)
    for _ in range(rnd.choice([1, 1, 2, 3, 8])):
        at = rnd.randrange(len(data) + 1)
        kind = rnd.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rnd.randrange(8)
        elif kind == 1:
            del data[at:at + rnd.randrange(1, 12)]
        elif kind == 2:
            data[at:at] = rnd.choice(PIECES)
        elif kind == 3:
            data[at:at] = data[at:at + rnd.randrange(1, 40)]
        elif kind == 4:
            del data[at:]
        elif kind == 5:
            data[at:] = rnd.choice(others)[rnd.randrange(10):]
        elif at < len(data):
            data[at] = rnd.randrange(256)
        if not data:
            data += bytes([rnd.randrange(256)])
    return bytes(data)


class Fuzz:
    def __init__(self, a, proxy):
        self.a, self.proxy, self.rnd = a, proxy, random.Random(a.seed)
        self.counts, self.failures, self.longest = collections.Counter(), [], (0.0, b"")
        self.slots, self.accepted, self.changing = asyncio.Semaphore(CONCURRENT), 0, False

    async def serve(self, reader, writer, is_abortive=False):
        """Responds to the first bytes, and closes a connection on which nothing happens."""
        self.accepted += 1
        try:
            while await asyncio.wait_for(reader.read(65536), ORIGIN_IDLE_MAX):
                if is_abortive:
                    self.abort(writer.get_extra_info("socket"))
                    break
                writer.write(RESPONSE)
                await writer.drain()
        except (OSError, asyncio.TimeoutError):
            pass
        finally:
            writer.close()

    async def open(self):
        connection = socket.socket()
        connection.setblocking(False)
        await asyncio.wait_for(asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.proxy.port)), 10)
        return connection

    async def one(self, data, ending, most, mutated):
        """Sends bytes; the proxy must end the connection, or relay a response, within a time."""
        loop, received, began = asyncio.get_running_loop(), b"", time.monotonic()
        outcome = "open"
        try:
            connection = await self.open()
        except (OSError, asyncio.TimeoutError) as error:
            self.failures.append("cannot connect: %r" % error)
            return
        # The kernel accepts before the proxy does.
        began = time.monotonic()
        if ending.startswith("rst"):
            self.abort(connection)
        try:
            position = 0
            while position < len(data):
                size = len(data) if len(data) > 5000 else self.rnd.choice([1, 3, 50, len(data)])
                await asyncio.wait_for(loop.sock_sendall(connection, data[position:position + size]), most)
                position += size
                if ending == "rst in it" and position > len(data) // 2:
                    return
                if self.rnd.random() < 0.2:
                    await asyncio.sleep(0)
            if ending == "rst":
                return
            if ending == "fin":
                connection.shutdown(socket.SHUT_WR)
            while True:
                left = began + most - time.monotonic()
                more = await asyncio.wait_for(loop.sock_recv(connection, 65536), max(left, 0.001))
                if not more:
                    outcome = "closed"
                    break
                received += more
                if ending == "rst after reply":
                    return
                is_whole = received.endswith(b"\r\n\r\nok") or data.startswith(b"HEAD ") and received.endswith(b"\r\n\r\n")
                if is_whole and b"\r\nContent-Length: 2\r\n" in received:
                    outcome = "response"
                    break
                if b"Proxy-Status: " in received and b"\r\nConnection: keep-alive\r\n" in received:
                    outcome = "error response"
                    break
        except asyncio.TimeoutError:
            self.failures.append("open after %.1f s, %r received, by %r" % (time.monotonic() - began, received[:60], data[:300]))
        except OSError:
            outcome = "reset"
        finally:
            connection.close()
            self.longest = max(self.longest, (time.monotonic() - began, data[:200]))
            self.counts["aborted" if outcome == "open" and ending.startswith("rst") else outcome] += 1
        if not mutated and outcome == "closed" and not self.changing and not received.startswith((b"\x05", b"\x00", b"HTTP/1.1 200")):
            self.failures.append("a valid negotiation was refused: %r received, by %r" % (received[:60], data[:200]))

    def abort(self, connection):
        """Makes the end of a connection a RST."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def page(self):
        """Gets the proxy's own page: it has then accepted all earlier connections."""
        loop, connection = asyncio.get_running_loop(), await self.open()
        try:
            await loop.sock_sendall(connection, LOCAL[0])
            if not (await asyncio.wait_for(loop.sock_recv(connection, 65536), 60)).startswith(b"HTTP/1.1 200 "):
                self.failures.append("the page of the proxy is not 200")
        except (OSError, asyncio.TimeoutError) as error:
            if not self.changing:
                self.failures.append("the page of the proxy: %r" % error)
        finally:
            connection.close()

    async def slow(self, data, must_pass):
        """Sends a byte each 100 ms. A negotiation that lasts longer than the limit must end at the limit."""
        loop, began, received = asyncio.get_running_loop(), time.monotonic(), b""
        connection = await self.open()

        async def send():
            for index in range(len(data)):
                await loop.sock_sendall(connection, data[index:index + 1])
                await asyncio.sleep(SLOW_BYTE_TIME)

        sender = asyncio.ensure_future(send())
        try:
            while b"\r\n\r\nok" not in received:
                more = await asyncio.wait_for(loop.sock_recv(connection, 65536), NEGOTIATION_MAX + LATE_MAX + 5)
                if not more:
                    break
                received += more
        except (OSError, asyncio.TimeoutError) as error:
            received += repr(error).encode()
        finally:
            sender.cancel()
            connection.close()
        seconds = time.monotonic() - began
        if must_pass and b"\r\n\r\nok" not in received:
            self.failures.append("a slow sender failed after %.1f s: %r by %r" % (seconds, received[:60], data[:100]))
        if not must_pass and not NEGOTIATION_MAX - 0.5 <= seconds <= NEGOTIATION_MAX + LATE_MAX:
            self.failures.append("a negotiation of %d bytes ended after %.1f s: %r by %r" % (len(data), seconds, received[:60], data[:100]))
        self.counts["slow, relayed" if must_pass else "slow, ended at the limit"] += 1

    async def phase(self, name, count, ports, commands=()):
        """Runs a part of the connections; `commands` change the conditions meanwhile."""
        began, self.counts, self.longest, self.changing = time.monotonic(), collections.Counter(), (0.0, b""), bool(commands)
        most = NEGOTIATION_MAX + LATE_MAX + (CONNECT_MAX + NEGOTIATION_MAX if commands else 0)
        valid, tasks = negotiations(ports[0]), set()
        usable = valid + LOCAL
        bases = usable + negotiations(ports[1])

        async def change():
            while True:
                self.proxy.command(self.rnd.choice(commands))
                await asyncio.sleep(0.3)

        changing = asyncio.ensure_future(change()) if commands else None
        slow = []
        if not commands:
            slow = [asyncio.ensure_future(self.slow(data, True)) for data in valid if len(data) * SLOW_BYTE_TIME < NEGOTIATION_MAX - 5]
            long = [data.split(b"\r\n")[0] + b"\r\nX-Long: " + b"x" * 400 + b"\r\n\r\n" for data in valid if data[0] > 5]
            long += [b"\x05\xff" + b"\x02" * 255 + b"\x01\xff" + bytes(255) + b"\xff" + bytes(255),
                     b"\x04\x01\x00\x50\x00\x00\x00\x01" + b"u" * 200 + b"\x00" + b"n" * 200]
            slow += [asyncio.ensure_future(self.slow(data, False)) for data in long]
        for number in range(count):
            if number % BATCH == 0:
                await self.page()
            await self.slots.acquire()
            mutated = self.rnd.random() < 0.9
            data = mutate(self.rnd, self.rnd.choice(bases), bases) if mutated else self.rnd.choice(usable)
            ending = self.rnd.choices(["wait", "rst", "rst in it", "fin", "rst after reply"], [5, 2, 1, 2, 1])[0]
            task = asyncio.ensure_future(self.one(data, ending, most, mutated or data in LOCAL))
            tasks.add(task)
            task.add_done_callback(lambda task: (tasks.discard(task), self.slots.release()))
        await asyncio.gather(*tasks, *slow)
        if changing:
            changing.cancel()
            for command in ("end-outage", "clear"):
                self.proxy.command(command)
        print("%-22s %5d connections in %5.1f s, the longest %4.1f s: %s" % (
            name, count, time.monotonic() - began, self.longest[0], ", ".join("%s %d" % pair for pair in sorted(self.counts.items()))), flush=True)

    async def run(self, program):
        servers = [await asyncio.start_server(lambda reader, writer, abortive=abortive: self.serve(reader, writer, abortive), "127.0.0.1", 0,
                                              backlog=4096) for abortive in (False, True)]
        ports = [server.sockets[0].getsockname()[1] for server in servers]
        # What the program opens once, for lookups for instance, is open before the first count.
        await self.phase("first connections", 200, ports)
        await self.settle(0)
        before, memory = self.proxy.descriptors(), self.proxy.memory()
        share = self.a.connections // 3
        await self.phase("no conditions", share, ports)
        self.proxy.command("profile wifi")
        await self.phase("wifi", share, ports)
        self.proxy.command("clear")
        await self.phase("changing conditions", self.a.connections - 2 * share, ports,
                         ["clear", "profile wifi", "profile lte", "outage", "end-outage", "end-outage", "profile offline", "disconnect", "profile 3g"])
        await self.phase("at the end", 200, ports)
        after = await self.settle(before)
        status = self.proxy.command("status")
        print("open files %d -> %d, VmRSS %d -> %d KiB; %s" % (before, after, memory, self.proxy.memory(), status))
        if after > before:
            self.failures.append("%d open files instead of %d" % (after, before))
        pipes = self.proxy.descriptors(pipes=True)
        if pipes > PIPE_FILES_MAX:
            self.failures.append("%d files of pipes" % pipes)
        if ", 0 open" not in status:
            self.failures.append("status: %s" % status)
        await self.strangers(program, ports[0])
        # The origin's connections end.
        await asyncio.sleep(ORIGIN_IDLE_MAX + 0.5)

    async def strangers(self, program, port):
        """Connections without the password: none may reach an origin."""
        before, main, count, began = self.accepted, self.proxy, self.a.connections // 20, time.monotonic()
        self.proxy = Slowlane(program, "--quiet", "--user", "soak", SLOWLANE_PROXY_PASSWORD="soak word")
        try:
            bases = negotiations(port) + [
                b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nProxy-Authorization: Basic c29hazpzb2Fr\r\n\r\nGET / HTTP/1.1\r\n\r\n" % port]
            tasks = []
            for number in range(count):
                if number % BATCH == 0:
                    await self.page()
                data = self.rnd.choice(bases)
                data = mutate(self.rnd, data, bases) if self.rnd.random() < 0.8 else data
                # After an error response the connection stays open for another request.
                tasks.append(asyncio.ensure_future(self.one(data, "fin", NEGOTIATION_MAX + LATE_MAX, True)))
            await asyncio.gather(*tasks)
            reached = self.accepted - before
            connection = await self.open()
            await asyncio.get_running_loop().sock_sendall(
                connection, b"\x05\x01\x02\x01\x04soak\x09soak word\x05\x01\x00\x01\x7f\x00\x00\x01" + struct.pack("!H", port))
            await asyncio.sleep(0.5)
            reply = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(connection, 100), 10)
            connection.close()
            print("%-22s %5d connections in %5.1f s, %d reached an origin" % ("without the password", count, time.monotonic() - began, reached))
            if reached:
                self.failures.append("%d connections without the password reached an origin" % reached)
            if not reply.startswith(b"\x05\x02\x01\x00\x05\x00"):
                self.failures.append("the right password: %r" % reply)
            if self.proxy.stop() != 0:
                self.failures.append("exit status %d with --user" % self.proxy.process.returncode)
        finally:
            self.proxy.stop()
            self.proxy = main

    async def settle(self, wanted):
        """Waits until the number of open files is that wanted, or does not fall any more."""
        lowest, since = self.proxy.descriptors(), time.monotonic()
        while lowest > wanted and time.monotonic() - since < 15:
            await asyncio.sleep(0.2)
            if self.proxy.descriptors() < lowest:
                lowest, since = self.proxy.descriptors(), time.monotonic()
        return self.proxy.descriptors()


def fuzz(a, program, isolated):
    """Returns the failures."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20_000), hard))
    options = [] if isolated else ["--to", "*=refuse", "--to", "127.0.0.0/8=direct", "--to", "localhost=direct"]
    proxy = Slowlane(program, "--quiet", "--seed", str(a.seed), *options)
    run = Fuzz(a, proxy)
    try:
        asyncio.run(run.run(program))
    except BrokenPipeError:
        run.failures.append("the proxy has ended")
    if proxy.stop() != 0:
        run.failures.append("exit status %d" % proxy.process.returncode)
    return run.failures
