"""OfflineIMAP, two-way sync of a Maildir with an IMAP server, Dovecot."""
import mail
from bench import EDGE, Effects, compare, fault, outage

DEBIAN = ["offlineimap3", "dovecot-imapd"]
VERSION = ["offlineimap", "--version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=3000, seconds=10),
    "lost-response": fault('TCP server "OK [APPENDUID" before-match reset'),
    "mid-append": fault('TCP client "Message-ID: <l2@test>" after-match bytes 2000 reset'),
    "mid-fetch": fault('TCP server "Message-ID: <s2@test>" after-match bytes 2000 reset'),
}


def run(bench, condition):
    port, server = mail.dovecot(bench)
    proxy = bench.proxy(port, CONDITIONS[condition])
    local = bench.folder / "local"
    for name in ["l1", "l2", "l3"]:
        mail.deliver(local / "INBOX", name, 4000)
    for name in ["s1", "s2", "s3"]:
        mail.deliver(server, name, 4000, bench.user)
    bench.write("home/.offlineimaprc", f"""[general]
accounts = a
metadata = {bench.folder}/metadata
socktimeout = 20
[Account a]
localrepository = near
remoterepository = far
[Repository near]
type = Maildir
localfolders = {local}
[Repository far]
type = IMAP
remotehost = 127.0.0.1
remoteport = {proxy.port}
remoteuser = ada
remotepass = x
ssl = no
starttls = no
auth_mechanisms = LOGIN
""")
    effects = set()
    words = ["offlineimap", "-o", "-u", "basic"]
    first = bench.do(*words, limit=120)
    proxy.heal()
    if not first.ok or "ERROR" in first.text:
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
    words = [line.strip() for line in first.text.splitlines() if "ERROR" in line or "rror:" in line]
    return Effects(effects, set(), f"first run: {'; '.join(words)[:100] or 'ok'}; messages at the ends: {len(ends[0])} and {len(ends[1])} of {len(wanted)}")
