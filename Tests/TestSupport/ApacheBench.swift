public import Testing

/// ApacheBench (`ab`), an HTTP/1.0 client.
public enum ApacheBench {
    /// Sends GET and HEAD requests to a URL, with and without keep-alive, and expects a response to each.
    public static func expectResponses(
        _ url: String, _ options: [String] = [], requests: Int, headStatus: Int = 200,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        for mode in [[], ["-k"], ["-i"], ["-i", "-k"]] {
            let arguments = ["-n", "\(requests)", "-c", "4", "-s", "20"] + mode + options + [url]
            let report = try await blocking {
                let (status, output, errors) = try runProgram("ab", arguments)
                #expect(status == 0, "ab \(arguments): \(errors)", sourceLocation: sourceLocation)
                return output
            }
            func number(_ name: String) -> String? {
                report.split(separator: "\n").first { $0.hasPrefix(name) }?.split(separator: " ").last.map(String.init)
            }
            #expect(number("Complete requests:") == "\(requests)", "\(report)", sourceLocation: sourceLocation)
            #expect(number("Failed requests:") == "0", "\(report)", sourceLocation: sourceLocation)
            let isRefused = mode.contains("-i") && headStatus != 200
            #expect(number("Non-2xx responses:") == (isRefused ? "\(requests)" : nil), sourceLocation: sourceLocation)
        }
    }
}
