"""A client that sends each new note until the server has accepted it.

correct   every attempt is the same request: the same key, and the same identifier of the record
naive     every attempt is a new request
"""
import http.client, os, queue, sys, threading, time, uuid

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from adapter import answer_acts, call, say

IS_CORRECT = sys.argv[1] == "correct"
rows, changes = [], queue.Queue()


def show():
    say({"view": {"rows": rows, "outbox": sum(row["icon"] == "upload" for row in rows)}})


def send(row):
    """Sends a note until the server has accepted it."""
    key = str(uuid.uuid4())
    while True:
        record = row["id"] if IS_CORRECT else str(uuid.uuid4())
        body = {"uuid": record, "title": row["title"], "text": row["text"]}
        try:
            if call("POST", "notes/", body, key if IS_CORRECT else None, timeout=10)[0] in (200, 201):
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.3)


def keep_sending():
    while True:
        row = changes.get()
        if row:
            send(row)
            row["icon"] = "none"
            show()
        if changes.empty():
            say({"settled": True})


def perform(do, record=None, title=None, text=None, **rest):
    row = None
    if do == "create":
        row = {"id": record, "title": title, "text": text, "icon": "upload"}
        rows.append(row)
        show()
    changes.put(row)


show()
threading.Thread(target=keep_sending, daemon=True).start()
answer_acts(perform)
