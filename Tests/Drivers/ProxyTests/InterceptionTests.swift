import Determinism
import Foundation
import Impairment
import LinkModel
import TestSupport
import Testing

@testable import Proxy

/// Clients of TLS whose connections the proxy ends, in front of servers with certificates of `openssl`.
@Suite(.tags(.gateways), .timeLimit(.minutes(5))) struct InterceptionTests {
    // MARK: Exchanges

    @Test(arguments: ["--http1.1", "--http2"], [false, true])
    func bytesPassInBothDirections(_ version: String, isForward: Bool) async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        try await withInterception(to: server.port, isForward: isForward) { context in
            let url = "https://localhost:\(isForward ? server.port : context.port)"
            let options = [version] + (isForward ? ["-x", "http://127.0.0.1:\(context.port)"] : [])
            let text = try await context.curl(options, "\(url)/a")
            #expect(text.output == "GET /a \(version == "--http2" ? "2.0" : "1.1") sni=localhost")
            let body = String(repeating: "0123456789", count: 100_000)
            try body.write(toFile: context.folder.path("body"), atomically: true, encoding: .utf8)
            let echo = try await context.curl(
                options + ["--data-binary", "@\(context.folder.path("body"))"], "\(url)/echo")
            #expect(echo.output == body)
            let status = await context.proxy.status()
            #expect(status.interception?.connections == 2 && status.interception?.pinnedHosts == [])
            #expect(status.connectionsAccepted == 2 && status.dialsFailed == 0)
            // The bytes are those of TLS.
            #expect(status.link.bytesCarried.up > 1_000_000 && status.link.bytesCarried.up < 1_100_000)
        }
    }

    /// curl's exit status of a connection that is reset, and of a stream of HTTP/2.
    @Test(arguments: [("--http1.1", 56), ("--http2", 92)])
    func theThirdPostLosesItsResponse(_ version: String, status: Int32) async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        let rule = FaultRule(method: "POST", path: "*", nth: 3, point: .beforeResponse, action: .reset)
        try await withInterception(to: server.port, isForward: true, { $0.faultRules = [rule] }) { context in
            var results: [Int32] = []
            for _ in 1...4 {
                results.append(
                    try await context.curl(
                        [version, "-x", "http://127.0.0.1:\(context.port)", "-d", "text"],
                        "https://localhost:\(server.port)/notes"
                    ).status)
            }
            #expect(results == [0, 0, status, 0])
            let status = await context.proxy.status()
            #expect(status.faultRules.first?.fired == 1 && status.faultRules.first?.matched == 4)
            #expect(status.opaqueTLS.connections == 0)
            // A connection that the fault has ended counts until its sockets are closed.
            try await eventually("no connection is without faults") {
                await context.proxy.status().connectionsWithoutFaults == 0
            }
        }
    }

    /// A fault and what a client sees: the status, the bytes of the response, and the result.
    private struct Row {
        let rule: String
        let action: FaultAction
        let point: FaultPoint
        let status: Int
        let bytes: Int
        let result: String

        /// Creates the row of an action at a point of a request with a response of 200 kB.
        init(_ action: FaultAction, _ name: String, _ point: FaultPoint) {
            rule = "\(name)-\(point.rawValue)"
            self.action = action
            self.point = point
            let isLost = ["reset", "close", "stall"].contains(name)
            switch point {
            case .beforeRequest, .midRequest, .beforeRequestEnd, .beforeResponse:
                status = isLost ? 0 : name == "respond" ? 503 : 200
                bytes = isLost ? 0 : 200_000
            case .afterResponseHead: (status, bytes) = (200, isLost ? 0 : 200_000)
            case .midResponse: (status, bytes) = (200, isLost ? 100_000 : 200_000)
            case .afterResponse: (status, bytes) = (200, 200_000)
            }
            result = !isLost || point == .afterResponse ? "ok" : name == "stall" ? "timeout" : "error"
        }
    }

    /// Each action at each point, except a response after the head of another, a rate of no more bytes, and a RST after the
    /// last byte, which may overtake it.
    private static let table: [Row] = FaultPoint.allCases.flatMap { point in
        [
            point == .afterResponse ? nil : Row(.reset, "reset", point), Row(.close, "close", point),
            Row(.stall, "stall", point), Row(.delay(.milliseconds(700)), "delay", point),
            point == .afterResponse ? nil : Row(.throttle(bytesPerSecond: 200_000), "throttle", point),
            point <= .beforeResponse ? Row(.respond(FaultResponse(status: 503)), "respond", point) : nil,
        ].compactMap { $0 }
    }

    @Test(arguments: [false, true]) func everyActionActsInsideOfTLS(isHTTP2: Bool) async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        let rules = Self.table.map { FaultRule(path: "/\($0.rule)", point: $0.point, action: $0.action) }
        try await withInterception(to: server.port, { $0.faultRules = rules }, endsInOrder: false) { context in
            let results = try await blocking {
                try SecureHTTPServer.ask(
                    port: context.port, authority: context.authority, isHTTP2: isHTTP2,
                    Self.table.map { "/\($0.rule)" } + ["/none"])
            }
            let none = try #require(results["/none"])
            #expect(none.status == 200 && none.bytes == 200_000 && none.result == "ok")
            for row in Self.table {
                let result = try #require(results["/\(row.rule)"], "\(row.rule)")
                #expect(result.status == row.status && result.result == row.result, "\(row.rule): \(result)")
                if row.status != 503 { #expect(result.bytes == row.bytes, "\(row.rule): \(result)") }
                let isEarly = row.point < .afterResponse
                if row.rule.hasPrefix("delay"), isEarly {
                    #expect(result.milliseconds >= 700, "\(row.rule): \(result)")
                }
                if row.rule.hasPrefix("throttle"), isEarly {
                    #expect(result.milliseconds >= 400, "\(row.rule): \(result)")
                }
                // A FIN ends all streams; the others have their responses.
                if !row.rule.hasPrefix("close") { #expect(result.others == 300_000, "\(row.rule): \(result)") }
            }
            let fired = await context.proxy.faultRules().filter { $0.fired == 1 }.count
            #expect(fired == Self.table.count)
        }
    }
}
