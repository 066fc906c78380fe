"""Peers of a proxy of datagrams that send at their own pace: a stream as RTP's, and a tunnel as WireGuard's.

datagram_streams.py rtp-server          prints its port; after a second without packets, prints as JSON: the numbers of lost packets,
                                        the jitter in ms (RFC 3550, 6.4.1)
datagram_streams.py rtp PORT COUNT      sends 50 packets per second, numbered from 1
datagram_streams.py tunnel-server       prints its port; responds to the newest address of its peer
datagram_streams.py tunnel PORT SECONDS prints as JSON: the attempts and seconds of the handshake, which is repeated every 5 s, the
                                        keepalives sent and answered, the ports at which the server has seen the client
"""

import json
import socket
import struct
import sys
import time

RTP = struct.Struct("!BBHII")
INTERVAL = 0.02
PAYLOAD = bytes(160)
INITIATION, RESPONSE, KEEPALIVE = 1, 2, 4


def bound():
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind(("127.0.0.1", 0))
    print(end.getsockname()[1], flush=True)
    return end


def rtp_server():
    end = bound()
    seen, jitter, last = set(), 0.0, None
    while True:
        try:
            packet = end.recv(2048)
        except TimeoutError:
            break
        arrival = time.monotonic()
        end.settimeout(1)
        _, _, number, timestamp, _ = RTP.unpack(packet[:12])
        seen.add(number)
        transit = arrival - timestamp / 8000
        if last is not None:
            jitter += (abs(transit - last) - jitter) / 16
        last = transit
    lost = [number for number in range(1, max(seen) + 1) if number not in seen]
    print(json.dumps({"received": len(seen), "lost": lost, "jitter": jitter * 1000}), flush=True)


def rtp(port, count):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.connect(("127.0.0.1", int(port)))
    start = time.monotonic()
    for number in range(1, int(count) + 1):
        time.sleep(max(0, start + number * INTERVAL - time.monotonic()))
        end.send(RTP.pack(0x80, 0, number, number * 160, 7) + PAYLOAD)


def tunnel_server():
    end = bound()
    while True:
        packet, peer = end.recvfrom(2048)
        kind = RESPONSE if packet[0] == INITIATION else KEEPALIVE
        end.sendto(bytes([kind]) + packet[1:5] + struct.pack("!H", peer[1]), peer)


def tunnel(port, seconds):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.connect(("127.0.0.1", int(port)))
    start, attempts = time.monotonic(), 0
    end.settimeout(5)
    while True:
        attempts += 1
        end.send(bytes([INITIATION]) + bytes(147))
        try:
            end.recv(2048)
            break
        except TimeoutError:
            if attempts == 4:
                raise
    handshake, ports, answered, sent = time.monotonic() - start, [], 0, 0
    end.settimeout(0.25)
    deadline = time.monotonic() + float(seconds)
    while time.monotonic() < deadline:
        sent += 1
        end.send(bytes([KEEPALIVE]) + struct.pack("!I", sent))
        try:
            packet = end.recv(2048)
        except TimeoutError:
            continue
        answered += struct.unpack("!I", packet[1:5])[0] == sent
        (seen,) = struct.unpack("!H", packet[5:7])
        if seen not in ports:
            ports.append(seen)
        time.sleep(0.1)
    print(json.dumps({"attempts": attempts, "seconds": handshake, "sent": sent, "answered": answered, "ports": len(ports)}))


def main(command, *arguments):
    {"rtp-server": rtp_server, "rtp": rtp, "tunnel-server": tunnel_server, "tunnel": tunnel}[command](*arguments)


main(*sys.argv[1:])
