"""Calls of connect(2) as hostile programs make them. Prints a line for each case: its name and 'ok', or what was wrong."""
import ctypes, errno, os, select, signal, socket, struct, sys, tempfile, threading, time

libc = ctypes.CDLL(None, use_errno=True)
AWAY = ("192.0.2.7", 80)  # RFC 5737: no such host


def raw(fd, address, length):
    ctypes.set_errno(0)
    return 0 if libc.connect(fd, address, length) == 0 else ctypes.get_errno()


def v4(host="192.0.2.7", port=80):
    return struct.pack("<H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(8)


def talk(s):
    s.settimeout(30)
    s.sendall(b"GET /a HTTP/1.0\r\n\r\n")
    return s.recv(100).startswith(b"HTTP/1.1 200")


def blocking():
    with socket.create_connection(AWAY) as s:
        return s.getblocking() or talk(s)


def plain_blocking():
    s = socket.socket()
    s.connect(AWAY)
    return os.get_blocking(s.fileno()) and talk(s)


def nonblocking():
    s = socket.socket()
    s.setblocking(False)
    code = s.connect_ex(AWAY)
    select.select([], [s], [], 5)
    return code == errno.EINPROGRESS and s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 and talk(s)


def epoll_before_connect():
    s = socket.socket()
    s.setblocking(False)
    e = select.epoll()
    e.register(s, select.EPOLLOUT | select.EPOLLET)
    e.poll(0)
    s.connect_ex(AWAY)
    return any(event & select.EPOLLOUT for _, event in e.poll(5))


def twice():
    s = socket.socket()
    s.connect(AWAY)
    return s.connect_ex(("192.0.2.8", 81)) == errno.EISCONN and talk(s)


def twice_nonblocking():
    s = socket.socket()
    s.setblocking(False)
    first = s.connect_ex(AWAY)
    select.select([], [s], [], 5)
    return first == errno.EINPROGRESS and s.connect_ex(AWAY) in (0, errno.EISCONN) and talk(s)


def bad_pointer():
    s = socket.socket()
    return raw(s.fileno(), ctypes.c_void_p(8), 16) == errno.EFAULT


def short_length():
    s = socket.socket()
    return [raw(s.fileno(), v4(), n) for n in (0, 1, 2, 8, 15)] == [errno.EINVAL] * 5


def negative_length():
    s = socket.socket()
    return raw(s.fileno(), v4(), -1) == errno.EINVAL


def long_length():
    s = socket.socket()
    return raw(s.fileno(), v4() + bytes(112), 128) == 0 and raw(s.fileno(), v4() + bytes(113), 129) == errno.EINVAL


def closed_descriptor():
    return raw(987, v4(), 16) == errno.EBADF


def not_a_socket():
    with open("/dev/null") as f:
        return raw(f.fileno(), v4(), 16) == errno.ENOTSOCK


def wrong_family():
    s = socket.socket(socket.AF_INET6)
    return raw(s.fileno(), v4(), 16) != 0


def unix_socket():
    with tempfile.TemporaryDirectory() as folder:
        server = socket.socket(socket.AF_UNIX)
        server.bind(folder + "/s")
        server.listen()
        s = socket.socket(socket.AF_UNIX)
        s.connect(folder + "/s")
        return True


def datagrams():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("127.0.0.1", 443))
    s.settimeout(10)
    s.send(b"to nobody")
    try:
        return s.recv(100)
    except ConnectionRefusedError:
        return True


def ipv6():
    s = socket.socket(socket.AF_INET6)
    s.connect(("2001:db8::7", 80))
    return talk(s)


def ipv6_only():
    s = socket.socket(socket.AF_INET6)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.connect(("2001:db8::7", 80))
    return talk(s)


def mapped():
    s = socket.socket(socket.AF_INET6)
    s.connect(("::ffff:192.0.2.7", 80))
    return talk(s)


def bound():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.connect(AWAY)
    return s.getsockname()[1] == port and talk(s)


def bound_without_port():
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
    s.bind(("127.0.0.1", 0))
    s.connect(AWAY)
    return talk(s)


def refused_is_true():
    s = socket.socket()
    return s.connect_ex(("127.0.0.1", 1)) == errno.ECONNREFUSED


def refused_then_connected():
    s = socket.socket()
    return s.connect_ex(("127.0.0.1", 1)) == errno.ECONNREFUSED and s.connect_ex(AWAY) == 0 and talk(s)


def disconnect():
    s = socket.socket()
    s.connect(AWAY)
    return raw(s.fileno(), bytes(16), 16) == 0


def many_threads(count=1000):
    done = []

    def one():
        try:
            s = socket.socket()
            s.connect(AWAY)
            done.append(talk(s))
            s.close()
        except OSError as error:
            done.append(error)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return done.count(True) == count or [str(d) for d in done if d is not True][:3]


def close_during_call():
    for _ in range(200):
        s = socket.socket()
        fd = s.detach()
        thread = threading.Thread(target=lambda: raw(fd, v4(), 16))
        thread.start()
        os.close(fd)
        thread.join(10)
        if thread.is_alive(): return False
    return True


def killed_during_call():
    for _ in range(50):
        pid = os.fork()
        if pid == 0:
            threading.Timer(0.0005, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
            while True:
                raw(socket.socket().fileno(), v4(), 16)
        os.waitpid(pid, 0)
    return True


def interrupted_by_signals():
    count = [0]
    signal.signal(signal.SIGALRM, lambda *_: count.__setitem__(0, count[0] + 1))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for _ in range(200):
            s = socket.socket()
            s.connect(AWAY)
            s.close()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return count[0] > 10


def changed_address():
    """Another thread changes the address while the call is decided; the call must end, whichever address it takes."""
    buffer = ctypes.create_string_buffer(v4())
    stop = []

    def change():
        while not stop:
            buffer[4] = b"\x01"
            buffer[4] = b"\xc0"

    thread = threading.Thread(target=change)
    thread.start()
    for _ in range(200):
        s = socket.socket()
        s.setblocking(False)
        raw(s.fileno(), buffer, 16)
        s.close()
    stop.append(1)
    thread.join()
    return True


def forked():
    for _ in range(50):
        pid = os.fork()
        if pid == 0:
            s = socket.socket()
            os._exit(0 if s.connect_ex(AWAY) == 0 and talk(s) else 1)
        if os.waitpid(pid, 0)[1] != 0: return False
    return True


def thread_after_the_main_thread_has_ended():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        def work():
            time.sleep(0.05)
            s = socket.socket()
            os.write(write, b"1" if s.connect_ex(AWAY) == 0 and talk(s) else b"0")
            os._exit(0)
        threading.Thread(target=work).start()
        libc.syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # exit of this thread only
    os.waitpid(pid, 0)
    return os.read(read, 1) == b"1"


def own_files_table():
    def work(result):
        if libc.unshare(0x400) != 0: return result.append(True)  # CLONE_FILES
        s = [socket.socket() for _ in range(5)][-1]
        result.append(s.connect_ex(AWAY) == 0 and talk(s))
    result = []
    thread = threading.Thread(target=work, args=(result,))
    thread.start()
    thread.join()
    return result == [True]


cases = [value for name, value in list(globals().items()) if callable(value) and value.__module__ == "__main__" and name not in ("raw", "v4", "talk")]
failed = 0
for case in cases:
    if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:]: continue
    try:
        result = case()
    except Exception as error:
        result = repr(error)
    print(case.__name__, "ok" if result is True else f"WRONG: {result}", flush=True)
    failed += result is not True
sys.exit(failed != 0)
