"""The queue of Postfix, which sends mails to an SMTP server (aiosmtpd). Postfix needs root."""
import contextlib, email, os, pathlib, shutil, sys, time

from bench import EDGE, Effects, Network, compare, fault, free_port, outage, wait_until, when

DEBIAN = ["postfix"]
PYPI = ["aiosmtpd==1.4.6"]
# Without root there is no version, so the program is skipped.
VERSION = ["postconf", "-d", "mail_version"] if os.getuid() == 0 else ["false"]
ACCEPTED = 'TCP server "250 " after "\\r\\n.\\r\\n" before-match'
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=1500, seconds=12),
    "lost-response": fault(f"{ACCEPTED} reset"),
    "stall": fault(f"{ACCEPTED} stall"),
    "mid-body": fault('TCP client "Subject: m2" after-match bytes 500 reset'),
    "end-of-mail": fault('TCP client "\\r\\n.\\r\\n" before-match reset'),
    "kill": Network("3g"),
}
SERVICES = """pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 2 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""


def run(bench, condition):
    port = free_port()
    store = bench.folder / "store"
    bench.start(sys.executable, "-m", "aiosmtpd", "-n", "-l", f"127.0.0.1:{port}", "-c", "aiosmtpd.handlers.Mailbox", store, port=port, name="smtpd")
    proxy = bench.proxy(port, CONDITIONS[condition])
    bench.folder.chmod(0o755)
    etc, queue, data = bench.folder / "etc", bench.folder / "queue", bench.folder / "data"
    for folder in [etc, queue, data]:
        folder.mkdir()
    shutil.chown(data, "postfix")
    (etc / "master.cf").write_text(SERVICES)
    (etc / "main.cf").write_text(f"""compatibility_level = 3.6
queue_directory = {queue}
data_directory = {data}
maillog_file = {bench.folder}/maillog
maillog_file_prefixes = {bench.folder}
myhostname = bench.test
mydestination =
inet_interfaces = loopback-only
inet_protocols = ipv4
relayhost = [127.0.0.1]:{proxy.port}
smtp_dns_support_level = disabled
smtp_tls_security_level = none
smtp_data_done_timeout = {'15s' if condition == 'stall' else '600s'}
queue_run_delay = 2s
minimal_backoff_time = 2s
maximal_backoff_time = 4s
alias_maps =
""")

    def start():
        bench.must("postfix", "-c", etc, "start")
        bench.processes.append(Master(queue))

    start()
    wanted = ["m1", "m2", "m3"]
    if condition == "kill":
        restart = when(lambda: proxy.bytes() > 1500, lambda: (Master(queue).kill(), time.sleep(1), start()))
    for name in wanted:
        text = f"From: ada@test\nTo: ben@test\nSubject: {name}\n\n" + ("x" * 70 + "\n") * 30
        bench.must("sendmail", "-C", etc, "-f", "ada@test", "ben@test", input=text)
    if condition == "kill":
        restart()
    waiting = lambda: [path for part in ["maildrop", "incoming", "active", "deferred"] for path in (queue / part).rglob("*") if path.is_file()]
    complete = wait_until(lambda: not waiting(), 75, 0.5)
    log = bench.folder / "maillog"
    text = log.read_text() if log.exists() else ""
    (bench.report / "maillog").write_text(text)
    found = [email.message_from_bytes(path.read_bytes())["Subject"] for path in pathlib.Path(store, "new").iterdir()]
    effects = compare(wanted, found)
    if not complete:
        effects = effects - {"lost"} | {"stuck"}
    if "status=deferred" in text and condition != "kill":
        effects.add("retried")
    return Effects(effects, {"lost"}, f"{len(wanted)} mails sent, {len(found)} received; {text.count('status=deferred')} deferred, {text.count('status=sent')} sent")


class Master:
    """The processes of Postfix, which leave the session of the command that starts them."""

    def __init__(self, queue):
        pidfile = queue / "pid/master.pid"
        if not wait_until(pidfile.exists, 10):
            raise RuntimeError("Postfix did not start")
        self.pid = int(pidfile.read_text())

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, 9)

    def wait(self, seconds):
        """Nothing: the processes are not children of this one."""
