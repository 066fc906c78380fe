"""The clients of scripts/soak http2 --part intercept, each of which sends four POST requests, one after the other if it can, and reads data.

A client has the arguments URL and BODY: the prefix of the paths and a file. It prints a line for each request, with the number of the
request and "200" or "ERR", and lines "digest SHA-256" or "bytes COUNT" for what it has read.
"""

# One process, so that the connection is kept. $0 is the option of the version.
CURL = """
curl -sS "$0" --max-time 20 --data-binary @"$2" -o /dev/null -w '%{url_effective} %{http_code}%{exitcode}\\n' "$1/post/[1-4]" |
    sed 's,.*/post/,,; s/ 2000$/ 200/; t; s/ .*/ ERR/'
echo "digest $(curl -sS "$0" --max-time 20 "$1/data" | sha256sum | cut -c1-64)"
"""

WGET = """
for number in 1 2 3 4; do
    wget -q --tries=1 --timeout=20 --ca-certificate="$SSL_CERT_FILE" --post-file="$2" -O /dev/null "$1/post/$number" \\
        && echo "$number 200" || echo "$number ERR"
done
echo "digest $(wget -q --tries=1 --ca-certificate="$SSL_CERT_FILE" -O - "$1/data" | sha256sum | cut -c1-64)"
"""

# `ls-remote` of protocol version 2 sends one POST, and `clone` two.
GIT = """
for number in 1 2 3 4; do
    git ls-remote -q "$1/repo.git" >/dev/null 2>&1 && echo "$number 200" || echo "$number ERR"
done
folder=$(mktemp -d)
git clone -q "$1/repo.git" "$folder/clone" >&2
echo "digest $(sha256sum <"$folder/clone/data" | cut -c1-64)"
rm -rf "$folder"
"""

NGHTTP = r"""
import hashlib, re, subprocess, sys
url, body = sys.argv[1:]
words = ["nghttp", "-v", "--no-dep", "-n", "-t", "20", "-d", body] + ["%s/post/%d" % (url, number) for number in range(1, 5)]
output = re.sub(r"\x1b\[[0-9;]*m", "", subprocess.run(words, capture_output=True, text=True).stdout)
numbers = dict(re.findall(r"send HEADERS frame <length=\d+, flags=0x\w+, stream_id=(\d+)>(?:(?!frame <)[\s\S])*?:path: \S+/post/(\d)", output))
for stream, number in numbers.items():
    status = re.search(r"recv \(stream_id=%s\) :status: (\d+)" % stream, output)
    is_reset = re.search(r"recv RST_STREAM frame <length=4, flags=0x00, stream_id=%s>" % stream, output)
    print(number, status.group(1) if status and not is_reset else "ERR")
data = subprocess.run(["nghttp", "-t", "20", url + "/data"], capture_output=True).stdout
print("digest", hashlib.sha256(data).hexdigest())
"""

H2LOAD = r"""
import os, re, subprocess, sys, tempfile
url, body = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    urls, log = os.path.join(folder, "urls"), os.path.join(folder, "log")
    with open(urls, "w") as file:
        file.writelines("%s/post/%d\n" % (url, number) for number in range(1, 5))
    subprocess.run(["h2load", "-n", "4", "-c", "1", "-m", "1", "-d", body, "-i", urls, "--log-file", log], capture_output=True)
    with open(log) as file:
        for number, line in enumerate(file, 1):
            print(number, "200" if line.split()[1] == "200" else "ERR")
output = subprocess.run(["h2load", "-n", "20", "-c", "1", "-m", "10", url + "/data"], capture_output=True, text=True).stdout
print("bytes", re.search(r"\((\d+)\) data", output).group(1))
"""

HTTPX = """
import hashlib, httpx, sys
url, body = sys.argv[1], open(sys.argv[2], "rb").read()
with httpx.Client(http2=True, timeout=20) as client:
    for number in range(1, 5):
        try:
            print(number, client.post("%s/post/%d" % (url, number), content=body).status_code)
        except httpx.TransportError as error:
            print(number, "ERR", repr(error))
    print("digest", hashlib.sha256(client.get(url + "/data").content).hexdigest())
"""

REQUESTS = """
import hashlib, requests, sys
url, body = sys.argv[1], open(sys.argv[2], "rb").read()
with requests.Session() as client:
    for number in range(1, 5):
        try:
            print(number, client.post("%s/post/%d" % (url, number), data=body, timeout=20).status_code)
        except requests.RequestException as error:
            print(number, "ERR", repr(error))
    print("digest", hashlib.sha256(client.get(url + "/data").content).hexdigest())
"""

AIOHTTP = """
import aiohttp, asyncio, hashlib, sys
url, body = sys.argv[1], open(sys.argv[2], "rb").read()
async def main():
    async with aiohttp.ClientSession(trust_env=True) as client:
        for number in range(1, 5):
            try:
                async with client.post("%s/post/%d" % (url, number), data=body) as response:
                    await response.read()
                    print(number, response.status)
            except aiohttp.ClientError as error:
                print(number, "ERR", repr(error))
        async with client.get(url + "/data") as response:
            print("digest", hashlib.sha256(await response.read()).hexdigest())
asyncio.run(main())
"""

# The third argument is the kind of the call.
GRPC = """
import grpc, hashlib, os, sys
url, body, kind = sys.argv[1], open(sys.argv[2], "rb").read(), sys.argv[3]
with grpc.secure_channel("grpc.test:443", grpc.ssl_channel_credentials()) as channel:
    path = "/slowlane.Test/" + kind
    def call(number):
        words = {"timeout": 20, "metadata": (("run", url.rsplit("/", 1)[1]), ("kind", kind), ("number", str(number)))}
        if kind == "unary":
            return channel.unary_unary(path)(body, **words)
        if kind == "download":
            return b"".join(channel.unary_stream(path)(body, **words))
        return channel.stream_unary(path)((body[start:start + 7_000] for start in range(0, len(body), 7_000)), **words)
    for number in range(1, 5):
        try:
            data = call(number)
            print(number, 200)
        except grpc.RpcError as error:
            print(number, "ERR", error.code(), error.details())
    print("digest", hashlib.sha256(data).hexdigest())
"""

NODE_HTTP2 = """
const http2 = require("http2"), fs = require("fs"), crypto = require("crypto");
const [url, file] = process.argv.slice(2), body = fs.readFileSync(file), { origin, pathname } = new URL(url);
let session;
const send = (method, path, content) => new Promise((resolve) => {
  if (!session || session.closed || session.destroyed) {
    session = http2.connect(origin);
    session.on("error", () => {});
  }
  const request = session.request({ ":method": method, ":path": pathname + path }), pieces = [];
  let status;
  request.setTimeout(20000, () => request.close(http2.constants.NGHTTP2_CANCEL));
  request.on("response", (fields) => { status = fields[":status"]; });
  request.on("data", (piece) => pieces.push(piece));
  request.on("error", () => resolve(["ERR"]));
  request.on("close", () => resolve([request.rstCode ? "ERR" : status, Buffer.concat(pieces)]));
  request.end(content);
});
(async () => {
  for (let number = 1; number < 5; number++) console.log(number, String((await send("POST", `/post/${number}`, body))[0]));
  console.log("digest", crypto.createHash("sha256").update((await send("GET", "/data"))[1]).digest("hex"));
  process.exit();
})();
"""

NODE_FETCH = """
const fs = require("fs"), crypto = require("crypto"), [url, file] = process.argv.slice(2), body = fs.readFileSync(file);
(async () => {
  for (let number = 1; number < 5; number++) {
    try {
      const response = await fetch(`${url}/post/${number}`, { method: "POST", body });
      await response.arrayBuffer();
      console.log(number, String(response.status));
    } catch (error) {
      console.log(number, "ERR", String(error.cause));
    }
  }
  const data = Buffer.from(await (await fetch(url + "/data")).arrayBuffer());
  console.log("digest", crypto.createHash("sha256").update(data).digest("hex"));
})();
"""

JAVA = """
import java.net.URI;
import java.net.http.*;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
class Client {
    public static void main(String[] a) throws Exception {
        var client = HttpClient.newHttpClient();
        for (int number = 1; number < 5; number++) {
            var request = HttpRequest.newBuilder(URI.create(a[0] + "/post/" + number)).POST(HttpRequest.BodyPublishers.ofFile(Path.of(a[1])));
            try {
                System.out.println(number + " " + client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray()).statusCode());
            } catch (java.io.IOException error) {
                System.out.println(number + " ERR " + error);
            }
        }
        var request = HttpRequest.newBuilder(URI.create(a[0] + "/data")).build();
        var data = client.send(request, HttpResponse.BodyHandlers.ofByteArray()).body();
        System.out.println("digest " + HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(data)));
    }
}
"""

RUBY = """
require "net/http"; require "digest"
url, body = URI(ARGV[0]), File.binread(ARGV[1])
Net::HTTP.start(url.host, url.port, use_ssl: true) do |client|
  (1..4).each do |number|
    begin
      puts "#{number} #{client.post("#{url.path}/post/#{number}", body).code}"
    rescue SystemCallError, IOError, OpenSSL::SSL::SSLError => error
      puts "#{number} ERR #{error.inspect}"
    end
  end
  puts "digest #{Digest::SHA256.hexdigest(client.get("#{url.path}/data").body)}"
end
"""

GO = """
package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	url := os.Args[1]
	body, _ := os.ReadFile(os.Args[2])
	for number := 1; number < 5; number++ {
		response, err := http.Post(fmt.Sprintf("%s/post/%d", url, number), "application/octet-stream", bytes.NewReader(body))
		if err != nil {
			fmt.Println(number, "ERR", err)
			continue
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		fmt.Println(number, response.StatusCode)
	}
	response, err := http.Get(url + "/data")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	data, _ := io.ReadAll(response.Body)
	fmt.Printf("digest %x\\n", sha256.Sum256(data))
}
"""

# Loads a page with scripts over HTTP/2, and prints the digest of all of them; then four fetch() send POST.
CHROMIUM = """
import hashlib, os, re, shutil, sys
from playwright.sync_api import sync_playwright
url, body = sys.argv[1:]
SEND = '''async ([url, number]) => {
  const body = await (await fetch(url + "/body")).arrayBuffer();
  try { const r = await fetch(`${url}/post/${number}`, {method: "POST", body}); await r.arrayBuffer(); return String(r.status); }
  catch (error) { return "ERR " + error; }
}'''
with sync_playwright() as playwright:
    program = os.environ.get("SLOWLANE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    browser = playwright.chromium.launch(executable_path=program)
    page = browser.new_context(ignore_https_errors=True).new_page()
    responses = []
    page.on("response", lambda response: responses.append(response))
    page.goto(url + "/page", wait_until="load")
    bodies = {int(re.search(r"/res/(\\d+)", response.url).group(1)): response.body() for response in responses if "/res/" in response.url}
    count = page.evaluate("performance.getEntriesByType('resource').filter((e) => e.nextHopProtocol == 'h2' && e.name.includes('/res/')).length")
    print("resources", count, page.evaluate("seen.length"))
    print("digest", hashlib.sha256(b"".join(bodies[number] for number in sorted(bodies))).hexdigest())
    for number in range(1, 5):
        print(number, page.evaluate(SEND, [url, number]))
    browser.close()
"""
