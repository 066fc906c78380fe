"""mbsync (isync), two-way sync of a Maildir with an IMAP server, Dovecot."""
import time

import mail
from bench import EDGE, Effects, compare, fault, outage, when

DEBIAN = ["isync", "dovecot-imapd"]
VERSION = ["mbsync", "--version"]
APPENDED = 'TCP server "OK [APPENDUID" before-match reset'
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=3000, seconds=10),
    "lost-response": fault(APPENDED),
    "mid-append": fault('TCP client "Message-ID: <l2@test>" after-match bytes 2000 reset'),
    "mid-fetch": fault('TCP server "Message-ID: <s2@test>" after-match bytes 2000 reset'),
    "kill": fault('TCP server "OK [APPENDUID" before-match stall'),
}
# The manual promises data safety with FSync (mbsync(1)), and says nothing about a lost response.
PROMISED = {"lost"}


def run(bench, condition):
    port, server = mail.dovecot(bench)
    proxy = bench.proxy(port, CONDITIONS[condition])
    local = bench.folder / "local"
    for name in ["l1", "l2", "l3"]:
        mail.deliver(local / "INBOX", name, 4000)
    for name in ["s1", "s2", "s3"]:
        mail.deliver(server, name, 4000, bench.user)
    bench.write("home/.mbsyncrc", f"""IMAPAccount a
Host 127.0.0.1
Port {proxy.port}
User ada
Pass x
SSLType None
AuthMechs LOGIN
Timeout 20

IMAPStore far
Account a

MaildirStore near
Path {local}/
Inbox {local}/INBOX
SubFolders Verbatim

Channel c
Far :far:
Near :near:
Patterns INBOX
Create Both
Expunge Both
SyncState *
""")
    effects = set()
    if condition == "kill":
        def end():
            time.sleep(0.5)
            bench.kill_command()
        when(lambda: proxy.fired, end)
    words = ["mbsync", "-c", bench.folder / "home/.mbsyncrc", "-a"]
    first = bench.do(*words, limit=90)
    proxy.heal()
    if not first.ok and condition != "kill":
        effects.add("error")
    if first.status is None:
        effects.add("stuck")
    for _ in range(2):
        last = bench.do(*words)
    if not last.ok:
        effects.add("stuck")
    wanted = ["l1", "l2", "l3", "s1", "s2", "s3"]
    ends = mail.subjects(local / "INBOX"), mail.subjects(server)
    for found in ends:
        effects |= compare(wanted, found)
    words = [line for line in first.text.splitlines() if "rror" in line or "imeout" in line or "losed" in line]
    return Effects(effects, PROMISED, f"first run: {'; '.join(words)[:100] or ('killed' if condition == 'kill' else 'ok')}; messages at the ends: {len(ends[0])} and {len(ends[1])} of {len(wanted)}")
