"""A notes client that keeps and sends every change, whatever the network does."""
import json, os, threading, uuid
from adapter import answer_acts, keep_syncing, now, request, say

FILE = os.environ["SLOWLANE_DATA"] + "/notes.json"
NEW = {"title": None, "text": None, "base": None, "changed": False, "deleted": False, "sent": None, "theirs": None}
lock, wake = threading.RLock(), threading.Event()
notes = json.load(open(FILE)) if os.path.exists(FILE) else {}

def pending(note): return note["changed"] or note["sent"] is not None
def save():  # before a request is sent and before an act is answered: a kill loses nothing
    with open(FILE + ".new", "w") as file: json.dump(notes, file)
    os.replace(FILE + ".new", FILE)
    rows = [{"id": id, "title": note["title"], "text": note["text"], "deleted": note["deleted"],
             "icon": "conflict" if note["theirs"] else "upload" if pending(note) else "none"} for id, note in notes.items()]
    say({"view": {"rows": rows, "outbox": sum(map(pending, notes.values()))}})

def send(id, note):
    with lock:
        if not note["sent"]:  # a repeated request is the same request, with the same key
            body = {"title": note["title"], "text": note["text"], "date": now(), "uuid": id, "revision": note["base"]}
            sent = ["PUT", f"notes/{id}/", body] if note["base"] else ["POST", "notes/", body]
            if note["deleted"]: sent = ["DELETE", f"notes/{id}/?revision={note['base']}", None]
            note.update(sent=[*sent, str(uuid.uuid4())], changed=False)
            save()
    status, answer = request(*note["sent"])
    with lock:
        if status == 409: note.update(theirs=answer["current"], changed=True)
        elif note["sent"][0] == "DELETE": notes.pop(id)
        else: note["base"] = answer["revision"]
        note["sent"] = None
        save()

def sync():
    for id, note in list(notes.items()):
        while pending(note) and not note["theirs"] and id in notes: send(id, note)
    index = {entry["uuid"]: entry["revision"] for entry in request("GET", "notes-uuids/")[1] if not entry.get("deleted")}
    for id in set(notes) | set(index):
        if notes.get(id, NEW)["base"] == index.get(id): continue
        server = request("GET", f"notes/{id}/")[1] if id in index else None
        with lock:
            if pending(notes.get(id, NEW)): continue
            if server: notes[id] = {**NEW, "title": server["title"], "text": server["text"], "base": server["revision"]}
            else: del notes[id]
            save()
    if not any(pending(note) and not note["theirs"] for note in notes.values()): say({"settled": True})

def perform(do, record=None, title=None, text=None, **rest):
    if do in ("create", "edit", "delete", "resolve"):
        with lock:
            note = notes.setdefault(record, dict(NEW))
            note.update(title=title or note["title"], text=text or note["text"], changed=True, deleted=do == "delete")
            if note["theirs"] and do == "resolve": note.update(base=note["theirs"]["revision"], theirs=None)
            save()
    wake.set()

save()
threading.Thread(target=keep_syncing, args=(sync, wake), daemon=True).start()
answer_acts(perform)
