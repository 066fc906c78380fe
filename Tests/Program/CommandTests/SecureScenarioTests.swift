import Foundation
import TestSupport
import Testing

extension CommandTests {
    /// Scenarios whose server speaks TLS, with programs in Python: an HTTPS server, and one of gRPC.
    @Suite(.serialized) struct SecureScenarioTests {
        private static let python = Repository.root.appending(path: ".build/python/bin/python")
        private static let certificates = Result { try TestCertificates() }

        /// The invariant that an order is executed once, as its line begins.
        private static let invariant = "no-duplicate-effect (I2)"

        /// Runs a scenario of a server and a client of `secure_peer.py`.
        private static func run(
            server: String, client: String, url: String? = nil, tls: String? = nil, fault: String, responses: String,
            options: [String] = []
        ) async throws -> Command.Result {
            try #require(FileManager.default.isExecutableFile(atPath: python.path()), "run scripts/setup --tests")
            let folder = try TemporaryFolder()
            let made = try certificates.get()
            let parts = [made.certificate("right"), made.key("right")].map {
                try? String(contentsOfFile: $0, encoding: .utf8)
            }
            try parts.compactMap { $0 }.joined()
                .write(toFile: folder.path("server.pem"), atomically: true, encoding: .utf8)
            let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Python/secure_peer.py")
            let words = "\(python.path()), \(script.path())"
            let files =
                server == "serve" ? folder.path("server.pem") : "\(made.certificate("right")), \(made.key("right"))"
            let start = url.map { "url: \"\($0)\"" } ?? "run: [\(words), \(server), \(files)]"
            let scenario = """
                scenario: 1
                name: order
                about: The second order meets a fault inside of TLS.
                limit: 1m
                server: { \(start), tls: \(tls ?? "{ ca: \(made.certificate("ca")) }") }
                devices:
                  A: { user: ada, starts: empty, client: { run: [\(words), \(client)], adapter: none } }
                network:
                  A: { 0s: wifi }
                faults:
                  - { request: POST any, nth: 2, point: \(fault), then: reset }
                expect:
                  traffic:
                    - { request: POST any, from: A, responses: [\(responses)] }

                """
            try scenario.write(toFile: folder.path("order.yaml"), atomically: true, encoding: .utf8)
            return try await Command.run(["run", folder.path("order.yaml")] + options)
        }

        /// A client that repeats an order without a key: the server has executed it twice if the response was lost.
        @Test(arguments: ["http1", "http2"]) func aLostResponseInsideOfTLSMakesANaiveClientOrderTwice(
            _ version: String
        ) async throws {
            let lost = try await Self.run(
                server: "serve", client: "order, \(version)", fault: "before-response", responses: "2xx, lost, 2xx")
            #expect(lost.status == 1, "\(lost.output)\(lost.errors)")
            #expect(lost.output.contains("ok    traffic: POST any from A, responses 2xx lost 2xx"), "\(lost.output)")
            #expect(
                lost.output.split(separator: "\n").contains {
                    $0.hasPrefix("FAIL") && $0.contains(Self.invariant)
                }, "\(lost.output)")
            // The request has not reached the server.
            let refused = try await Self.run(
                server: "serve", client: "order, \(version)", fault: "before-request", responses: "2xx, 2xx")
            #expect(refused.status == 0, "\(refused.output)\(refused.errors)")
            #expect(refused.output.contains("invariants checked: \(Self.invariant)"), "\(refused.output)")
        }

        @Test(arguments: [("naive", Int32(1)), ("keyed", 0)]) func aCallOfGRPCIsExecutedTwiceWithoutAKey(
            _ client: String, status: Int32
        ) async throws {
            let result = try await Self.run(
                server: "grpc-serve", client: "grpc-order, \(client)", fault: "before-response",
                responses: "2xx, lost, 2xx")
            #expect(result.status == status, "\(result.output)\(result.errors)")
            #expect(
                result.output.contains("ok    traffic: POST any from A, responses 2xx lost 2xx"), "\(result.output)")
            #expect(result.output.contains("FAIL  invariant: \(Self.invariant)") == (client == "naive"))
            #expect(result.output.contains("invariants checked: \(Self.invariant)"), "\(result.output)")
        }

        /// A server that runs already, at a path.
        @Test(arguments: ["http1", "http2"]) func aServerMayRunAlready(_ version: String) async throws {
            let server = try SecureHTTPServer(Self.certificates.get())
            let result = try await Self.run(
                server: "", client: "order, \(version)", url: "https://localhost:\(server.port)/v1",
                fault: "before-request", responses: "2xx, 2xx")
            #expect(result.status == 0, "\(result.output)\(result.errors)")
            #expect(result.output.contains("ok    traffic: POST any from A, responses 2xx 2xx"), "\(result.output)")
        }

        @Test func aServerThatIsNotTrustedIsShownToNobody() async throws {
            let certificate = try Self.certificates.get().certificate("stranger")
            for (tls, message) in [
                ("{ ca: \(certificate) }", "traffic: POST any from A"), ("{ ca: /nowhere.pem }", "/nowhere.pem"),
            ] {
                let result = try await Self.run(
                    server: "serve", client: "order, http1", tls: tls, fault: "before-response",
                    responses: "2xx, lost, 2xx")
                #expect(result.status != 0)
                #expect((result.output + result.errors).contains(message), "\(result.output)\(result.errors)")
            }
            let any = try await Self.run(
                server: "serve", client: "order, http1", tls: "{ insecure: true }", fault: "before-request",
                responses: "2xx, 2xx")
            #expect(any.status == 0, "\(any.output)\(any.errors)")
        }

        @Test func itCannotBeSimulated() async throws {
            let result = try await Self.run(
                server: "serve", client: "order, http1", fault: "before-response", responses: "2xx",
                options: ["--simulated"])
            #expect(result.status == 65)
            #expect(
                (result.output + result.errors).contains("the client of A is a program"),
                "\(result.output)\(result.errors)")
        }
    }
}
