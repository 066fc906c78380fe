import Foundation
import TestSupport
import Testing

extension CommandTests {
    /// Faults on the calls of gRPC: clients and a server of Python's grpcio, and `slowlane proxy`.
    @Suite(.serialized) struct GRPCFaultTests {
        private static let python = Repository.root.appending(path: ".build/python/bin/python")

        private static func peer(_ arguments: String...) throws -> Command {
            try #require(FileManager.default.isExecutableFile(atPath: python.path()), "run scripts/setup --tests")
            let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Python/grpc_peer.py")
            return try Command([script.path()] + arguments, binary: python)
        }

        /// Runs a client through a proxy with a fault. Returns the lines of client and server, and what the proxy has logged.
        ///
        /// - Parameter last: Words of the log that the proxy writes at the end of the connection, before which it must not stop.
        private static func run(
            _ client: String, _ fault: String, until last: String? = nil
        ) async throws -> (client: [String], server: [String], log: String) {
            let server = try peer("serve")
            defer { server.signal(SIGKILL) }
            let upstream = try await server.output.line(with: "port ").dropFirst(5)
            let proxy = try Command(["proxy", "--upstream", String(upstream), "--fault", fault])
            let line = try await proxy.output.line(with: "listening on ")
            let address = try #require(line.split(separator: " ").dropFirst(2).first)
            let caller = try peer(client, String(try #require(address.split(separator: ":").last)))
            #expect(await caller.end() == 0, "\(caller.errors.text)")
            if let last { _ = try await proxy.errors.line(with: last) }
            proxy.type("quit\n")
            #expect(await proxy.end() == 0)
            #expect(proxy.output.text.contains("fired 1: \(fault)"), "\(proxy.output.text)")
            func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init) }
            return (lines(caller.output.text), lines(server.output.text), proxy.errors.text)
        }

        private static let orders = (1...5).map { "created order \($0)" }

        /// The defect: a call that is not idempotent is repeated although the server may have executed it.
        @Test func aNaiveClientCreatesAnOrderTwiceWhenItsResponseIsLost() async throws {
            let rule = "POST /slowlane.Orders/Create nth 3 before-response stall"
            let naive = try await Self.run("naive", rule)
            #expect(naive.client.contains("order 3 DEADLINE_EXCEEDED") && naive.client.contains("order 3 attempts 2"))
            #expect(naive.server.filter { $0 == "created order 3" }.count == 2, "\(naive.server)")
            #expect(Set(naive.server).isSuperset(of: Self.orders))

            let keyed = try await Self.run("keyed", rule)
            #expect(keyed.client.contains("order 3 attempts 2"))
            #expect(keyed.server.filter { $0.hasPrefix("created") } == Self.orders)
            #expect(keyed.log.contains("(stream 5) at before-response"), "\(keyed.log)")
        }

        /// A refused stream has not been processed, so each client may repeat the call.
        @Test func aRefusedCallMayBeRepeatedByEveryClient() async throws {
            let refused = try await Self.run(
                "naive", "POST /slowlane.Orders/Create nth 3 before-request reset REFUSED_STREAM")
            #expect(refused.server.filter { $0.hasPrefix("created") } == Self.orders)
        }

        @Test func aStreamOfRequestsThatIsResetIsAborted() async throws {
            let reset = try await Self.run(
                "upload", "POST /slowlane.Orders/Upload mid-request bytes 50000 reset")
            #expect(reset.client == ["result INTERNAL"])
            #expect(!reset.server.contains { $0.hasPrefix("uploaded") }, "\(reset.server)")
        }

        /// The messages arrive, and the status is lost with the trailers: a client must not take them for complete.
        @Test func aStreamOfResponsesWithoutItsStatusFails() async throws {
            let lost = try await Self.run(
                "list", "POST /slowlane.Orders/List mid-response bytes 1000000000 drop-trailers")
            // grpcio may drop messages that it has received when the status is missing.
            #expect(lost.client.count == 1 && lost.client[0].hasSuffix(" UNKNOWN"), "\(lost.client)")
            #expect(lost.server.contains("listed"))
        }

        /// A window of 65 535 bytes that does not open again stops a sender of 200 000 bytes until its deadline.
        @Test func aSenderStopsAtAWindowThatDoesNotOpen() async throws {
            let blocked = try await Self.run("upload", "POST /slowlane.Orders/Upload before-request block-window")
            #expect(blocked.client == ["result DEADLINE_EXCEEDED"])
            #expect(!blocked.server.contains { $0.hasPrefix("uploaded") }, "\(blocked.server)")
        }

        @Test func aClientAcknowledgesEachPing() async throws {
            let rule = "POST /slowlane.Orders/List before-response ping"
            let pinged = try await Self.run("list", rule, until: "PING")
            #expect(pinged.client == ["result 50 OK"])
            let counts = pinged.log.split(separator: "\n").first { $0.contains("PING") }?
                .split(separator: " ").compactMap { Int($0) }
            // Before and after the head, after the messages and after the trailers.
            #expect(counts?.count == 2 && counts?.first == counts?.last && counts?.first ?? 0 >= 4, "\(pinged.log)")
        }
    }
}
