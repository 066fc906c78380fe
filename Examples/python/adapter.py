"""What both clients share: lines for the runner, and one request to the server."""
import base64, datetime, http.client, json, os, random, sys, urllib.parse

URL = urllib.parse.urlsplit(os.environ["SLOWLANE_URL"])
USER = f"{os.environ['SLOWLANE_USER']}:{os.environ['SLOWLANE_PASSWORD']}"
AUTHORIZATION = "Basic " + base64.b64encode(USER.encode()).decode()


def say(line):
    """Prints a line for the runner."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def now():
    """Returns the date of a note."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


def answer_acts(perform):
    """Performs each act that the runner sends, and answers it; lines without an id need no answer."""
    for line in sys.stdin:
        act = json.loads(line)
        id = act.pop("id", None)
        if id is None:
            continue
        try:
            perform(**act)
            say({"id": id, "ok": True})
        except Exception as error:
            say({"id": id, "ok": False, "error": repr(error)})


def call(method, path, body=None, key=None, timeout=3):
    """Returns the status, the JSON of the response, and its header fields."""
    headers = {"Authorization": AUTHORIZATION, "Content-Type": "application/json"}
    if key:
        headers["Idempotency-Key"] = key
    connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=timeout)
    try:
        connection.request(method, f"{URL.path}/api/{path}", json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content[:1] in (b"{", b"[") else None, response.headers
    finally:
        connection.close()


def request(*arguments):
    """Returns the status and the JSON of a response that a client of notes expects."""
    status, answer, headers = call(*arguments)
    if status not in (200, 201, 204, 409):
        raise ConnectionError(headers.get("Retry-After", "0"))
    return status, answer


def keep_syncing(sync, wake):
    """Syncs whenever `wake` is set, and repeats a sync that failed after a growing delay."""
    delay = 0.1
    while True:
        wake.clear()
        try:
            sync()
            delay, wait = 0.1, None
        except (OSError, http.client.HTTPException) as error:
            retry_after = int(str(error)) if str(error).isdigit() else 0
            delay = min(2 * delay, 4)
            wait = max(retry_after, delay * random.uniform(0.5, 1))
        # An act does not shorten the delay that the server asks for.
        wake.wait(wait)
