// An exchange as a command or as test code. Bodies and header fields are not recorded.

import { visible } from "./format.js";

const shell = (text) => (/^[A-Za-z0-9_.,:\/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const noBody = (x) => `the body is not recorded (${x.requestBytes ?? 0} bytes)`;
const hasBody = (x) => (x.requestBytes ?? 0) > 0 || ["POST", "PUT", "PATCH"].includes(x.method);
const printable = (text) => !/[\u0000-\u001f\u007f-\u009f]/.test(text);

/** Returns the address to connect to: a port on all interfaces is reached over loopback. */
function addressOf(proxy) {
  const listen = proxy?.listen || "127.0.0.1:8001";
  return listen.replace(/^(0\.0\.0\.0|\[::\]|):/, "127.0.0.1:");
}

// Brackets are patterns for curl, and a # ends the path.
const target = (x) => {
  const text = x.target.startsWith("/") ? x.target : `/${x.target}`;
  return [...text].map((c) => (/^[!$-;=?-Z_a-z~]$/.test(c) ? c : encodeURIComponent(isWhole(c) ? c : "\ufffd"))).join("");
};
const isWhole = (c) => !/^[\ud800-\udfff]$/.test(c);
const isCut = (x) => x.target.endsWith("…");
const pathOf = (x) => x.target.split("?")[0];
/** A method as a word: anything else would be code of the network's. */
const methodOf = (x) => (/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(x.method) ? x.method : "GET");

/** Returns the fault rule that loses the response of an exchange like this one. */
export function ruleOf(x, rest = "before-response reset") {
  const path = pathOf(x);
  const usable = path !== "" && !/[\s"']/.test(path) && printable(path) && !isCut(x);
  return `${/^[A-Z]+$/.test(x.method) ? x.method : "any"}${usable ? ` ${path}` : ""} ${rest}`;
}

/** Returns a call of curl. */
export function curl(x, proxy) {
  const lines = [];
  if (isCut(x)) lines.push("# The target was longer than what the events contain.");
  if (hasBody(x)) lines.push(`# ${noBody(x)}: put it into the file "body"`);
  const parts = ["curl -i"];
  if (methodOf(x) === "HEAD") parts.push("--head");
  else if (methodOf(x) !== "GET" || hasBody(x)) parts.push(`-X ${shell(methodOf(x))}`);
  if (hasBody(x)) parts.push("--data-binary @body");
  if (x.destination) parts.push(`-x ${shell(`http://${addressOf(proxy)}`)}`);
  parts.push(shell(`http://${x.destination ?? addressOf(proxy)}${target(x)}`));
  lines.push(parts.join(" "));
  return lines.join("\n");
}

// JSON's escapes are those of Python; Swift writes them with braces, and a `\(` of the network stays a text.
const escape = (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
const python = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, escape);
const swift = (text) => {
  let out = "";
  for (const c of text) {
    const code = c.codePointAt(0);
    if (c === '"' || c === "\\") out += `\\${c}`;
    else if (code < 32 || code > 126) out += `\\u{${code.toString(16)}}`;
    else out += c;
  }
  return `"${out}"`;
};

function linkOf(x) {
  return x.link && /^[a-z0-9.-]+$/i.test(x.link) && !["none", "custom"].includes(x.link) ? x.link : null;
}

const names = { lost: "is lost", client: "is rejected", server: "fails", ok: "succeeds", open: "succeeds" };

/** Returns a test with Swift Testing. */
export function swiftTest(x, proxy) {
  const link = linkOf(x);
  const upstream = x.destination ?? (proxy?.upstream || "127.0.0.1:8000");
  const network = [link ? swift(link) : null, `upstream: ${swift(upstream)}`].filter(Boolean).join(", ");
  const name = x.outcome === "lost" ? "theRequestIsLost" : `theRequestGets${x.status ?? "AResponse"}`;
  const lines = [`@Test(.network(${network}))`, `func ${name}() async throws {`];
  lines.push("    let network = try Network.current");
  if (x.outcome === "lost") lines.push(`    try await network.fault(${swift(ruleOf(x))})`);
  lines.push(
    `    var request = URLRequest(url: try #require(URL(string: ${swift(target(x))}, relativeTo: network.url)))`,
    `    request.httpMethod = ${swift(methodOf(x))}`,
  );
  if (hasBody(x)) lines.push(`    request.httpBody = Data()  // ${noBody(x)}`);
  if (x.outcome === "lost") {
    lines.push("    await #expect(throws: URLError.self) { _ = try await URLSession.shared.data(for: request) }");
  } else {
    lines.push("    let (_, response) = try await URLSession.shared.data(for: request)");
    lines.push(`    #expect((response as? HTTPURLResponse)?.statusCode == ${x.status ?? 200})`);
  }
  lines.push("}");
  return lines.join("\n");
}

/** Returns a test with pytest. */
export function pytest(x, proxy) {
  const link = linkOf(x);
  const upstream = x.destination ?? (proxy?.upstream || "127.0.0.1:8000");
  const marker = [link ? python(link) : null, `upstream=${python(upstream)}`].filter(Boolean).join(", ");
  const name = `test_the_request_${names[x.outcome].replaceAll(" ", "_")}`;
  const body = hasBody(x) ? `, data=b""  # ${noBody(x)}\n    ` : "";
  const request = `urllib.request.Request(network.url + ${python(target(x))}, method=${python(methodOf(x))}${body})`;
  const open = "urllib.request.urlopen(request, timeout=60)";
  const lines = x.status >= 400 ? ["import urllib.error"] : [];
  lines.push("import urllib.request", "", "import pytest", "", "");
  lines.push(`@pytest.mark.network(${marker})`, `def ${name}(network):`, `    request = ${request}`);
  if (x.outcome === "lost") {
    lines.push(`    network.fault(${python(ruleOf(x))})`, "    with pytest.raises(OSError):", `        ${open}`);
  } else if (x.status >= 400) {
    lines.push("    with pytest.raises(urllib.error.HTTPError) as problem:", `        ${open}`);
    lines.push(`    assert problem.value.code == ${x.status}`);
  } else {
    lines.push(`    with ${open} as response:`, `        assert response.status == ${x.status ?? 200}`);
  }
  return lines.join("\n");
}

/** The title of an exchange, with its invisible characters as escapes. */
export const title = (x) => `${visible(x.method)} ${visible(x.target)}`;
