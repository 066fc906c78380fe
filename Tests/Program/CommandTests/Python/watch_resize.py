"""Runs `slowlane notes watch` on a pseudoterminal whose size changes.

Usage: watch_resize.py PROGRAM STORE. Exits with 1 and the output if the table is not drawn again, or is wider than the terminal.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
import unicodedata

TIMEOUT = 60
program, store = sys.argv[1:3]
child, terminal = pty.fork()
if child == 0:
    os.environ.update(TERM="xterm")
    time.sleep(0.5)
    os.execv(program, [program, "notes", "watch", "--store", store])


def resize(columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def read_table():
    """Returns the lines of the next whole table."""
    output = b""
    end = time.monotonic() + TIMEOUT
    while b"\x1b[J" not in output:
        if time.monotonic() > end:
            sys.exit(f"no table in {output!r}")
        if select.select([terminal], [], [], 0.1)[0]:
            output += os.read(terminal, 65536)
    table = output.decode().split("\x1b[H")[-1]
    return re.split("\r+\n", re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", table))


def width(line):
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


resize(70)
for columns in (70, 41):
    resize(columns)
    lines = read_table()
    if not any("漢" in line for line in lines):
        lines = read_table()
    widest = max(map(width, lines))
    if not columns - 1 <= widest <= columns:
        sys.exit(f"{widest} of {columns} columns: {lines}")
    print(widest)
os.kill(child, signal.SIGTERM)
while True:
    try:
        if not os.read(terminal, 65536):
            break
    except OSError:
        break
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
