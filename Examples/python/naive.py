"""A notes client as it is written first. It works on a good network."""
import uuid
from adapter import answer_acts, call, now, say

notes = {}  # in memory only


def show():
    rows = [{"id": id, "title": note["title"], "text": note["text"], "icon": "none"} for id, note in notes.items()]
    say({"view": {"rows": rows, "outbox": 0}})


def attempt(method, path, body=None):
    """Sends a request up to three times, and gives up."""
    for _ in range(3):
        try:
            if method == "POST":
                body["uuid"] = str(uuid.uuid4())  # each attempt creates another note
            return call(method, path, body, timeout=0.5)[1]
        except OSError:
            pass


def sync():
    for entry in attempt("GET", "notes-uuids/") or []:
        if not entry.get("deleted"):
            note = attempt("GET", f"notes/{entry['uuid']}/")
            if note:
                notes[entry["uuid"]] = note  # whatever the user has written meanwhile
    show()


def perform(do, record=None, title=None, text=None, **rest):
    if do == "create":
        notes[record] = {"title": title, "text": text, "revision": None}
        show()
        answer = attempt("POST", "notes/", {"title": title, "text": text})
        if answer:
            notes[answer["uuid"]] = {**notes.pop(record), "revision": answer["revision"]}
    elif do in ("edit", "resolve"):
        note = notes[record]
        note.update(title=title or note["title"], text=text or note["text"])
        show()
        answer = attempt("PUT", f"notes/{record}/", {**note, "date": now()})
        if answer:
            note.update(answer.get("current", answer))  # a conflict is resolved by the server
    elif do == "delete":
        attempt("DELETE", f"notes/{record}/?revision={notes.pop(record)['revision']}")
    elif do == "sync":
        sync()
    show()
    say({"settled": True})


show()
sync()
answer_acts(perform)
