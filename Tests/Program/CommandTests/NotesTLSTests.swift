import Foundation
import TestSupport
import Testing

extension NotesCommandTests {
    /// `slowlane notes` with a server that has TLS.
    @Suite(.serialized) struct NotesTLSTests {
        private static let certificates = try? TestCertificates()

        private static func made() throws -> TestCertificates { try #require(certificates, "openssl is missing") }

        /// Starts a notes server without TLS, and returns its port.
        private static func server() async throws -> (command: Command, port: Int) {
            let command = try Command(["notes-server", "--listen", "127.0.0.1:0", "--user", "ada:secret", "--quiet"])
            return (command, try await port(of: command))
        }

        private static func port(of command: Command) async throws -> Int {
            let line = try await command.output.line(with: "listening on ")
            return try #require(line.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) })
        }

        private static func sync(_ store: String, _ address: String, _ more: String...) async throws -> Command.Result {
            try await Command.run(
                ["notes", "sync", "--store", store, "--server", address, "--user", "ada:secret"] + more)
        }

        @Test func aSyncOverTLSReachesTheServerAlsoThroughASlowLink() async throws {
            let certificates = try Self.made()
            let (server, port) = try await Self.server()
            let relay = try TLSRelay(certificates, to: port)
            let proxy = try Command([
                "proxy", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:\(relay.port)", "--profile", "edge",
            ])
            let slowPort = try await Self.port(of: proxy)
            let folder = try TemporaryFolder()
            let (phone, laptop) = (folder.path("phone.db"), folder.path("laptop.db"))
            _ = try await Command.run("notes", "new", "Milk", "--text", "2 l", "--store", phone)
            let ca = certificates.certificate("ca")
            let sent = try await Self.sync(phone, "https://localhost:\(slowPort)", "--ca", ca, "--timeout", "60")
            #expect(sent.status == 0, "\(sent.errors)")
            let fetched = try await Self.sync(laptop, "https://127.0.0.1:\(relay.port)/", "--ca", ca, "--timeout", "20")
            #expect(fetched.status == 0, "\(fetched.errors)")
            #expect(try await Command.run("notes", "list", "--store", laptop).output.contains("Milk   2 l"))
            for command in [proxy, server] {
                command.signal(SIGTERM)
                #expect(await command.end() == 0)
            }
        }

        @Test(arguments: [
            ("stranger", "certificate-untrusted", "no trusted authority has signed the certificate", "--ca FILE"),
            ("other", "certificate-wrong-name", "the certificate is not for 'localhost'", "--server"),
            ("expired", "certificate-expired", "the certificate has expired (valid until ", "renew"),
            ("", "tls-failed", "the server does not speak TLS on this port", "http://HOST:PORT"),
        ]) func aFailedHandshakeHasItsCause(
            _ certificate: String, _ cause: String, _ reason: String, _ remedy: String
        ) async throws {
            let certificates = try Self.made()
            let (server, port) = try await Self.server()
            let relay = certificate.isEmpty ? nil : try TLSRelay(certificates, certificate, to: port)
            let folder = try TemporaryFolder()
            let store = folder.path("phone.db")
            _ = try await Command.run("notes", "new", "Milk", "--store", store)
            let address = "https://localhost:\(relay?.port ?? port)"
            let ca = certificates.certificate("ca")
            let text = try await Self.sync(store, address, "--ca", ca, "--timeout", "1")
            #expect(text.status == 69)
            #expect(text.errors.contains("\(address): \(reason)") && text.errors.contains(remedy), "\(text.errors)")
            let json = try await Self.sync(store, address, "--ca", ca, "--timeout", "1", "--json")
            #expect(json.output.contains(#""cause":"\#(cause)","reason":"\#(reason)"#), "\(json.output)")
            // Nothing has reached the server, and nothing is lost.
            #expect(try await Command.run("notes", "status", "--store", store).output.contains("1 pending change"))
            #expect(try await Command.run("notes", "status", "--json", "--store", store).output.contains(cause))
            server.signal(SIGTERM)
            #expect(await server.end() == 0)
        }

        /// Without close_notify, the end of the connection may be the work of an attacker who hides the rest.
        @Test func aResponseThatEndsWithTheConnectionNeedsACloseNotify() async throws {
            let certificates = try Self.made()
            let folder = try TemporaryFolder()
            for (sendsCloseNotify, cause) in [(true, "foreign-server"), (false, "connection-failed")] {
                let relay = try TLSRelay(certificates, to: nil, sendsCloseNotify: sendsCloseNotify)
                let result = try await Self.sync(
                    folder.path("\(sendsCloseNotify).db"), "https://localhost:\(relay.port)", "--ca",
                    certificates.certificate("ca"), "--timeout", "3", "--json")
                #expect(result.output.contains(#""cause":"\#(cause)""#), "\(result.output)")
            }
        }

        @Test func wrongOptionsOfTLSAreRefusedBeforeTheStoreIsCreated() async throws {
            let folder = try TemporaryFolder()
            let (store, rubbish) = (folder.path("phone.db"), folder.path("rubbish.pem"))
            try Data("rubbish".utf8).write(to: URL(filePath: rubbish))
            for (address, ca, message) in [
                ("127.0.0.1:1", rubbish, "--ca needs a server with TLS, --server https://HOST"),
                ("https://localhost", folder.path("none.pem"), "--ca '\(folder.path("none.pem"))': no such file"),
                ("https://localhost", rubbish, "there is no certificate in PEM form (BEGIN CERTIFICATE)"),
            ] {
                let result = try await Self.sync(store, address, "--ca", ca)
                #expect(result.status == 64 && result.errors.contains(message), "\(result.errors)")
            }
            #expect(!FileManager.default.fileExists(atPath: store))
        }
    }
}
