"""Types at the prompt of `slowlane proxy` on a pseudoterminal, under an interactive shell with job control.

Usage: edit_line.py PROGRAM. Prints a line per step; exits with 1 and the terminal's output if a step does not succeed.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

TIMEOUT = 60
program = sys.argv[1]
shell, terminal = pty.fork()
if shell == 0:
    os.environ.update(PS1="shell$ ", TERM="xterm")
    os.execvp("bash", ["bash", "--norc", "--noediting", "-i"])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
unread = b""


def wait(text):
    """Waits for a text in the output after the last one, and removes it."""
    global unread
    end = time.monotonic() + TIMEOUT
    while text.encode() not in unread:
        if time.monotonic() > end:
            sys.exit(f"no {text!r} in {unread[-1000:]!r}")
        if select.select([terminal], [], [], 0.1)[0]:
            unread += os.read(terminal, 65536)
    unread = unread.split(text.encode(), 1)[1]


def wait_for_mode(is_canonical):
    """Waits until the terminal has buffering and echo, or neither."""
    end = time.monotonic() + TIMEOUT
    while True:
        flags = termios.tcgetattr(terminal)[3]
        if [bool(flags & flag) for flag in (termios.ICANON, termios.ECHO)] == [is_canonical] * 2:
            return
        if time.monotonic() > end:
            sys.exit(f"the terminal's mode: {flags:x}")
        time.sleep(0.01)


def send(keys):
    os.write(terminal, keys.encode())


def start():
    send(f"'{program}' proxy --upstream 9\n")
    wait("listening on ")
    wait(" > ")


try:
    wait("shell$ ")
    start()
    wait_for_mode(False)
    send("prof\t3x\x1b[D\x7fedge")  # Tab, cursor left, backspace
    wait(" > profile edgex\x1b[1D")
    send("\x05\x7f\r")
    wait("> profile edge")
    wait("ok profile edge: ")
    send("\x15日本語\x1b[D\x1b[D")
    wait(" > 日本語\x1b[4D")
    print("a line is edited")

    send("\x1a")
    wait("Stopped")
    wait_for_mode(True)
    wait("shell$ ")
    send("bg\n")
    wait("shell$ ")
    time.sleep(0.5)
    send("jobs\n")
    wait("Running")
    send("fg\n")
    wait(" > 日本語\x1b[4D")
    wait_for_mode(False)
    send("\x1a")
    wait("Stopped")
    wait_for_mode(True)
    wait("shell$ ")
    send("fg\n")
    wait(" > 日本語\x1b[4D")
    wait_for_mode(False)
    print("the line and the mode return after a stop")

    send("\x15\x1b[A\r")
    wait("ok profile edge: ")
    send("\x03")
    wait("stopped")
    wait("shell$ ")
    wait_for_mode(True)
    print("Ctrl-C restores the mode")

    start()
    wait_for_mode(False)
    send("quit\r")
    wait("ok quit")
    wait("shell$ ")
    wait_for_mode(True)
    print("quit restores the mode")
finally:
    os.kill(shell, signal.SIGHUP)
    os.close(terminal)
