import Client
import Determinism
import HTTPSockets
import NIOCore
import TestSupport
import Testing
import Wire

@testable import LiveClient

/// The URL of a client's server, and the call that waits for the result of a sync.
@Suite(.tags(.services), .timeLimit(.minutes(1))) struct SyncClientWaitTests {
    private static func configuration(
        _ url: String, trusting certificates: UpstreamCertificates? = nil
    ) throws -> SyncClientConfiguration {
        var configuration = try SyncClientConfiguration(
            url: url, trusting: certificates, user: "ada", credentials: .password("secret"), storePath: nil)
        configuration.resource = JSONResource(name: "items", path: "/items/")
        return configuration
    }

    @Test(arguments: [
        ("http://127.0.0.1:9000", "127.0.0.1:9000"), ("http://api.test", "api.test:80"), ("9000", "127.0.0.1:9000"),
        ("https://api.test", "api.test:443"), ("https://[::1]:8443", "[::1]:8443"),
    ]) func aURLWithOrWithoutTLSNamesTheServer(_ url: String, _ address: String) throws {
        let configuration = try Self.configuration(url)
        #expect(configuration.address == address && (configuration.tls != nil) == url.hasPrefix("https"))
    }

    @Test(arguments: [
        ("ftp://api.test", "the scheme 'ftp' is not supported; give http://HOST:PORT or https://HOST:PORT"),
        ("http://api.test/v1", "the path '/v1' at column 16"), ("https://api.test/v1", "the path '/v1' at column 17"),
        ("api.test", "expected HOST:PORT, http://HOST:PORT or https://HOST"),
    ]) func anotherTextIsRefusedWithoutAProxysWords(_ url: String, _ problem: String) {
        let error = #expect(throws: UpstreamTLSError.self) { try Self.configuration(url) }
        #expect(error?.part == .url && error?.problem.contains(problem) == true, "\(error?.problem ?? "")")
        #expect(error?.problem.contains("upstream") == false)
    }

    @Test func certificatesNeedAServerWithTLS() {
        let error = #expect(throws: UpstreamTLSError.self) {
            try Self.configuration("http://api.test", trusting: UpstreamCertificates())
        }
        #expect(error?.part == .authorities)
        #expect(error?.problem.contains("remove 'trusting', or give the URL with https://") == true)
    }

    @Test func aSyncEndsWhenAllIsSentAndFetched() async throws {
        let server = try await ItemsServer.start()
        server.set("1", ["name": "Milk"])
        let client = try await SyncClient.start(Self.configuration("http://127.0.0.1:\(server.port)"))
        let id = try await client.create(RecordContent(Array(#"{"name":"Bread"}"#.utf8)))
        #expect(try await client.sync(within: .seconds(20)) == nil)
        let rows = try await client.rows()
        #expect(rows.count == 2 && rows.allSatisfy { $0.icon == .none })
        #expect(server.items.contains { $0["id"]?.text == id.text })
        await client.stop()
        await #expect(throws: SyncClient.StoppedError.self) { try await client.sync(within: .seconds(20)) }
        await server.stop()
    }

    /// The failure of an earlier attempt is not the result of a later call.
    @Test func aRefusedConnectionEndsTheWaitAndTheNextCallTriesAgain() async throws {
        let port = try TestSocket.unusedPort()
        let client = try await SyncClient.start(Self.configuration("http://127.0.0.1:\(port)"))
        _ = try await client.create(RecordContent(Array(#"{"name":"Bread"}"#.utf8)))
        for _ in 0..<4 {
            let start = ContinuousClock.now
            #expect(try await client.sync(within: .seconds(50))?.kind == .refused)
            #expect(ContinuousClock.now - start < .seconds(20))
        }
        #expect(try await client.status().outbox == 1)
        let server = try await ItemsServer.start(port: port)
        #expect(try await client.sync(within: .seconds(20)) == nil)
        #expect(server.items.map { $0["name"]?.text } == ["Bread"])
        await client.stop()
        await server.stop()
    }

    /// A wrong path and a wrong key are told at once, in each call.
    @Test func aWrongPathOrKeyIsTheReason() async throws {
        let server = try await ItemsServer.start()
        server.set("1", ["name": "Milk"])
        var configuration = try Self.configuration("http://127.0.0.1:\(server.port)")
        let path = "the server rejects the request for the list of records (404)"
        let key = "1 record cannot be read: it has no 'id' or no 'version'"
        for (resource, reason) in [
            (JSONResource(name: "items", path: "/items/other/"), path),
            (JSONResource(name: "items", path: "/items/", revisionKey: "version"), key),
        ] {
            configuration.resource = resource
            let client = try await SyncClient.start(configuration)
            for _ in 0..<2 {
                let start = ContinuousClock.now
                let problem = try await client.sync(within: .seconds(50))
                #expect(problem == SyncProblem(.unexpectedResponse, reason))
                #expect(ContinuousClock.now - start < .seconds(20))
            }
            await client.stop()
        }
        await server.stop()
    }

    /// A connection that may come back is waited for: here, the server accepts and does not respond.
    @Test func aSyncThatIsNotCompleteHasAReasonAfterItsTimeout() async throws {
        let (socket, port) = try TestSocket.listen()
        var configuration = try Self.configuration("http://127.0.0.1:\(port)")
        let client = try await SyncClient.start(configuration)
        let start = ContinuousClock.now
        let problem = try await client.sync(within: .milliseconds(300))
        #expect(problem?.kind == .timedOut && problem?.reason == "not complete after 0.3 seconds")
        #expect(ContinuousClock.now - start >= .milliseconds(300))
        await client.stop()

        // The reason is that of the last attempt if one has failed; the first failure does not end the wait.
        configuration.timeouts.firstByte = .milliseconds(50)
        let impatient = try await SyncClient.start(configuration)
        let next = ContinuousClock.now
        let failure = try await impatient.sync(within: .milliseconds(600))
        #expect(
            failure?.kind == .timedOut && failure?.reason.hasPrefix("timed out") == true, "\(failure?.reason ?? "")")
        #expect(ContinuousClock.now - next >= .milliseconds(600))
        await impatient.stop()
        withExtendedLifetime(socket) {}
    }

    @Test func aSyncWithoutAnInterfaceNamesIt() async throws {
        let client = try await SyncClient.start(
            Self.configuration("http://127.0.0.1:1"), interface: NetworkInterface(isUp: false))
        #expect(try await client.sync(within: .milliseconds(50))?.reason == "the network interface is down")
        // A wait that has begun ends with the client.
        let (ends, end) = AsyncStream.makeStream(of: Bool.self)
        try await client.onLoop { core in
            core.sync(within: .seconds(50)).whenFailure { error in
                end.yield(error is SyncClient.StoppedError)
                end.finish()
            }
        }
        await client.stop()
        #expect(await ends.first { _ in true } == true)
    }
}
