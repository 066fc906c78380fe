import Foundation
import TestSupport
import Testing

/// Unusual but valid requests from `curl`, with the responses of Toxiproxy 2.12.0.
@Suite(.tags(.servers), .timeLimit(.minutes(10))) struct CurlTests {
    @Test func unusualRequestsGetTheResponsesOfTheOriginal() async throws {
        try await withServer { (call, _) async throws in
            func curl(_ path: String, _ arguments: [String]) async throws -> (status: String, body: String) {
                let url = "http://127.0.0.1:\(call.port)\(path)"
                let result = try await blocking {
                    try runProgram(
                        "curl", ["-sS", "-m", "20", "--path-as-is", "-w", "\n%{http_code}"] + arguments + [url])
                }
                #expect(result.status == 0, "\(result.errors)")
                let lines = result.output.split(separator: "\n", omittingEmptySubsequences: false)
                return (String(lines.last ?? ""), lines.dropLast().joined(separator: "\n"))
            }
            let proxy = { (name: String) in #"{"name":"\#(name)","upstream":"127.0.0.1:1","enabled":false}"# }
            let shown = { (name: String) in
                #"{"name":"\#(name)","listen":"","upstream":"127.0.0.1:1","enabled":false,"toxics":[]}"#
            }
            let calls: [(path: String, arguments: [String], status: String, body: String)] = [
                ("/proxies", ["-d", proxy("form")], "201", shown("form")),
                ("/proxies", ["-H", "Content-Type:", "-d", proxy("untyped")], "201", shown("untyped")),
                ("/proxies", ["-H", "Transfer-Encoding: chunked", "-d", proxy("chunked")], "201", shown("chunked")),
                ("/proxies", ["-H", "Expect: 100-continue", "-d", proxy("expected")], "201", shown("expected")),
                (
                    "/proxies", ["-d", #"{"name":"a","name":"last","upstream":"127.0.0.1:1","enabled":false}"#], "201",
                    shown("last")
                ),
                ("/proxies/form?x=y", [], "200", shown("form")), ("/proxies/%66orm", [], "200", shown("form")),
                ("/proxies/form", ["-X", "GET", "-d", "a body"], "200", shown("form")),
                ("/proxies/form", ["-X", "PATCH", "-d", "{}"], "200", shown("form")),
                ("/proxies/form", ["-X", "PATCH"], "400", "{\"error\":\"bad request body: EOF\",\"status\":400}\n"),
                ("/proxies/form", ["-X", "DELETE", "-d", "a body"], "204", ""),
                ("/proxies/untyped", ["-H", "Accept: text/xml", "-H", "Accept-Encoding: br"], "200", shown("untyped")),
                ("/version", ["-H", "User-Agent:"], "200", "{\"version\": \"2.12.0\"}\n"),
                ("/version?", ["-H", "User-Agent: Mozilla"], "200", "{\"version\": \"2.12.0\"}\n"),
                ("/PROXIES", [], "404", "404 page not found\n"), ("/proxies", ["-X", "PUT", "-d", "{}"], "405", ""),
                ("/populate", ["-d", "null"], "201", #"{"proxies":[]}"#),
                ("/reset?x", ["-X", "POST"], "204", ""),
            ]
            for (path, arguments, status, body) in calls {
                let response = try await curl(path, arguments)
                #expect(response.status == status && response.body == body, "\(arguments) \(path): \(response)")
            }
        }
    }
}
