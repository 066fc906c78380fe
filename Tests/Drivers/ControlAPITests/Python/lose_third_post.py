"""Checks a client's reaction to a lost response, with the client library from PyPI and requests.

usage: lose_third_post.py API-PORT

The five lines that a test needs stand between the comments. Prints 'ok NAME' after each check; the first failure ends
the script with status 1.
"""

import http.server
import json
import sys
import threading

import requests
from toxiproxy import Toxiproxy
from toxiproxy.api import APIConsumer

created = []


class Notes(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        created.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        body = json.dumps({"id": len(created)}).encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def check(name, is_true):
    if not is_true:
        sys.exit("failed: %s (server has %s)" % (name, created))
    print("ok", name, flush=True)


notes = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Notes)
threading.Thread(target=notes.serve_forever, daemon=True).start()
api = "http://127.0.0.1:%s" % sys.argv[1]
APIConsumer.host, APIConsumer.port = "127.0.0.1", int(sys.argv[1])

# The third POST's response is lost:
toxiproxy = Toxiproxy()
proxy = toxiproxy.create(name="notes", listen="127.0.0.1:0", upstream="127.0.0.1:%d" % notes.server_port)
faults = api + "/slowlane/v1/proxies/notes/faults"
requests.post(faults, json={"rule": "POST * nth 3 before-response reset"}).raise_for_status()
url = "http://%s/notes/" % toxiproxy.get_proxy("notes").listen
# End of the five lines.

statuses = []
with requests.Session() as session:
    for text in ["one", "two", "three", "four"]:
        try:
            statuses.append(session.post(url, data=text, timeout=30).status_code)
        except requests.ConnectionError:
            statuses.append("lost")
check("the third response is lost", statuses == [201, 201, "lost", 201])
check("the server has executed the third request", created == ["one", "two", "three", "four"])
fault = requests.get(faults).json()["faults"][0]
check("the fault is counted", (fault["matched"], fault["fired"]) == (4, 1))

requests.post(faults, json={"name": "busy", "rule": "POST * times 2 before-request respond 503 Retry-After: 0 body busy"})
responses = [requests.post(url, data="five") for _ in range(3)]
check("the first two requests fail", [response.status_code for response in responses] == [503, 503, 201])
check("the reply is complete", (responses[0].text, responses[0].headers["Retry-After"]) == ("busy", "0"))
check("the server has executed the last one", created[4:] == ["five"])
toxiproxy.reset()
check("reset removes the faults", requests.get(faults).json()["faults"] == [])
check("requests pass after reset", requests.post(url, data="six").status_code == 201)
