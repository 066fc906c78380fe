"""vdirsyncer, two-way sync of calendars, with Radicale as the CalDAV server."""
import pathlib, sys

from bench import EDGE, Effects, compare, fault, free_port, outage, when

PYPI = ["vdirsyncer==0.21.0", "radicale==3.9.0"]
VERSION = ["vdirsyncer", "--version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=2500),
    "lost-response": fault("PUT * before-response reset"),
    "lost-conflict": fault("PUT * before-response reset"),
    "mid-body": fault("REPORT * mid-response reset"),
    "lost-delete": fault("DELETE * before-response reset"),
    "kill": fault("PUT * before-response stall"),
}
# The documentation promises nothing about a lost response. It promises that conflicts are not resolved by itself
# (https://vdirsyncer.pimutils.org/en/stable/config.html, conflict_resolution), so an overwritten event breaks a promise.
PROMISED = {"overwritten"}
EVENT = """BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//bench//EN\r\nBEGIN:VEVENT\r\nUID:{uid}\r\nDTSTAMP:20260101T000000Z\r
DTSTART:20260102T100000Z\r\nSUMMARY:{text}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"""


def run(bench, condition):
    server = free_port()
    bench.start(
        sys.executable, "-m", "radicale", "--server-hosts", f"127.0.0.1:{server}", "--storage-filesystem-folder",
        bench.folder / "server", "--auth-type", "none", "--rights-type", "authenticated", "--logging-level", "warning",
        port=server, name="radicale")
    collection = bench.folder / "server/collection-root/ada/calendar"
    bench.must("curl", "-sf", "-u", "ada:x", "-X", "MKCALENDAR", f"http://127.0.0.1:{server}/ada/calendar/")
    proxy = bench.proxy(server, CONDITIONS[condition])
    local = bench.folder / "local"
    (local / "calendar").mkdir(parents=True)
    bench.write("config", f"""[general]
status_path = "{bench.folder}/status/"
[pair calendar]
a = "local"
b = "remote"
collections = ["calendar"]
[storage local]
type = "filesystem"
path = "{local}"
fileext = ".ics"
[storage remote]
type = "caldav"
url = "http://127.0.0.1:{proxy.port}/"
username = "ada"
password = "x"
""")
    environment = {"VDIRSYNCER_CONFIG": str(bench.folder / "config")}

    def sync(limit=60):
        return bench.do("vdirsyncer", "sync", env=environment, limit=limit)

    def direct(method, uid, text=None):
        words = ["curl", "-sf", "-u", "ada:x", "-X", method, f"http://127.0.0.1:{server}/ada/calendar/{uid}.ics"]
        bench.must(*words, *(["-H", "Content-Type: text/calendar", "--data-binary", EVENT.format(uid=uid, text=text)] if text else []))

    def save(uid, text):
        (local / f"calendar/{uid}.ics").write_text(EVENT.format(uid=uid, text=text))

    def texts(folder):
        return [line[8:].strip() for path in pathlib.Path(folder).glob("*.ics") for line in path.read_text().splitlines() if line.startswith("SUMMARY:")]

    if condition in ("lost-delete", "mid-body"):
        # Events that both ends have, before the network is bad.
        direct("PUT", "e1", "one")
        if condition == "mid-body":
            for number in range(40):
                direct("PUT", f"m{number}", f"m{number}")
    bench.must("vdirsyncer", "discover", env=environment, input="y\n" * 4)
    effects, wanted = set(), ["one", "two"]
    if condition == "mid-body":
        wanted = ["one", "two"] + [f"m{number}" for number in range(40)]
        save("e2", "two")
    elif condition == "lost-delete":
        bench.must("vdirsyncer", "sync", env=environment)
        (local / "calendar/e1.ics").unlink()
        save("e2", "two")
        wanted = ["two"]
    else:
        save("e1", "one")
        save("e2", "two")
    if condition == "kill":
        when(lambda: proxy.fired, bench.kill_command)
    first = sync()
    if condition == "lost-conflict":
        # Somebody else changes the event between the lost response and the next sync.
        stored = [uid for uid in ["e1", "e2"] if (collection / f"{uid}.ics").exists()]
        direct("PUT", stored[0], "from elsewhere")
        own = {"e1": "one", "e2": "two"}[stored[0]]
    proxy.heal()
    if not first.ok and condition != "kill":
        effects.add("error")
    if first.status is None:
        effects.add("stuck")
    second = sync()
    third = sync()
    both = texts(local / "calendar"), texts(collection)
    if condition == "lost-conflict":
        # Both texts must be somewhere: a conflict that is shown keeps each end as it is.
        everywhere = both[0] + both[1]
        if own not in everywhere or "from elsewhere" not in everywhere:
            effects.add("overwritten")
        seen = "conflict shown" if "conflict" in (second.text + third.text).lower() else "no conflict shown"
    else:
        for found in both:
            effects |= compare(wanted, found)
        words = [line for line in first.text.splitlines() if line.startswith(("error", "critical"))]
        seen = f"first sync: {'killed' if condition == 'kill' else '; '.join(words)[:110] or 'ok'}; later ones: {'ok' if third.ok else 'error'}"
    return Effects(effects, PROMISED, seen.replace("|", "/"))
