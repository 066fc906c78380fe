"""The notes client of this project, and its server."""
import json, pathlib

from bench import EDGE, Effects, compare, fault, free_port, outage, when

VERSION = [pathlib.Path(__file__).parents[3] / ".build/debug/slowlane", "--version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=500, seconds=12),
    "lost-response": fault("POST * before-response reset"),
    "lost-edit": fault("PUT * before-response reset"),
    "lost-conflict": fault("PUT * before-response reset"),
    "mid-body": fault("GET * mid-response reset"),
    "kill": fault("POST * before-response stall"),
}


def run(bench, condition):
    port = free_port()
    bench.start(bench.slowlane, "notes-server", "--listen", f"127.0.0.1:{port}", "--user", "ada:ada", port=port, name="server")
    proxy = bench.proxy(port, CONDITIONS[condition])

    def notes(*words, store="a", to=None, limit=90):
        connection = ["--server", f"127.0.0.1:{to or proxy.port}", "--user", "ada:ada"] if words[0] == "sync" else []
        return bench.do(bench.slowlane, "notes", *words, "--store", bench.folder / f"{store}.notes", *connection, limit=limit)

    def texts(store):
        text = bench.must(bench.slowlane, "notes", "list", "--json", "--store", bench.folder / f"{store}.notes")
        found = []
        for line in text.splitlines():
            value = json.loads(line)
            found += [value] if value.get("type") == "note" else value.get("notes", [])
        return sorted(note["title"] for note in found)

    wanted = ["one", "two"]
    if condition in ("lost-edit", "lost-conflict", "mid-body"):
        notes("new", "first", store="b")
        notes("sync", store="b", to=port)
        wanted.append("first")
    if condition in ("lost-edit", "lost-conflict"):
        notes("sync", to=port)
        notes("edit", "first", "--text", "mine")
    notes("new", "one", "--text", "1")
    notes("new", "two", "--text", "2")
    effects = set()
    if condition == "kill":
        when(lambda: proxy.fired, lambda: bench.kill_command())
    first = notes("sync")
    if condition == "lost-conflict":
        notes("edit", "first", "--text", "from elsewhere", store="b")
        notes("sync", store="b", to=port)
    proxy.heal()
    if first.status is None:
        effects.add("stuck")
    elif not first.ok and condition != "kill":
        effects.add("error")
    last = notes("sync")
    if not last.ok and condition != "lost-conflict":
        effects.add("stuck")
    notes("sync", store="b", to=port)
    for store in ["a", "b"]:
        effects |= compare(sorted(wanted), texts(store))
    shown = bench.do(bench.slowlane, "notes", "show", "first", "--store", bench.folder / "a.notes").text if "first" in wanted else ""
    if condition == "lost-conflict" and not ("mine" in shown or "elsewhere" in shown):
        effects.add("overwritten")
    return Effects(effects, {"lost", "doubled", "resurrected", "overwritten", "stuck"}, f"first sync: {'ok' if first.ok else 'killed' if condition == 'kill' else 'failed'}; notes: {' '.join(texts('a'))}")
