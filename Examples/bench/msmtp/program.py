"""msmtp, which sends a mail to an SMTP server (aiosmtpd); the user repeats a command that has failed."""
import email, pathlib, sys

from bench import EDGE, Effects, compare, fault, free_port, outage

DEBIAN = ["msmtp"]
PYPI = ["aiosmtpd==1.4.6"]
VERSION = ["msmtp", "--version"]
ACCEPTED = 'TCP server "250 " after "\\r\\n.\\r\\n" before-match'
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=1500, seconds=12),
    "lost-response": fault(f"{ACCEPTED} reset"),
    "lost-close": fault(f"{ACCEPTED} close"),
    "stall": fault(f"{ACCEPTED} stall"),
    "mid-body": fault('TCP client "Subject: m2" after-match bytes 500 reset'),
    "end-of-mail": fault('TCP client "\\r\\n.\\r\\n" before-match reset'),
}


def run(bench, condition):
    port = free_port()
    store = bench.folder / "store"
    bench.start(sys.executable, "-m", "aiosmtpd", "-n", "-l", f"127.0.0.1:{port}", "-c", "aiosmtpd.handlers.Mailbox", store, port=port, name="smtpd")
    proxy = bench.proxy(port, CONDITIONS[condition])
    wanted, effects, failures = ["m1", "m2", "m3"], set(), []
    for name in wanted:
        text = f"From: ada@test\nTo: ben@test\nSubject: {name}\n\n" + ("x" * 70 + "\n") * 30
        for attempt in range(3):
            done = bench.do(
                "msmtp", "--host=127.0.0.1", f"--port={proxy.port}", "--from=ada@test", "--timeout=20", "--auth=off", "--tls=off",
                "ben@test", input=text, limit=90)
            if done.ok:
                break
            failures.append(done.text.strip().splitlines()[-1] if done.status is not None else "no end")
            effects |= {"error", "retried"} if done.status is not None else {"stuck", "retried"}
    found = [email.message_from_bytes(path.read_bytes())["Subject"] for path in pathlib.Path(store, "new").iterdir()]
    effects |= compare(wanted, found)
    # RFC 5321, 4.5.3.2.6 and 6.1: a lost response after the end of the mail may double it; a mail must not be lost.
    return Effects(effects, {"lost"}, f"{len(wanted)} mails sent, {len(found)} received; {failures[0][:80] if failures else 'no failure'}")
