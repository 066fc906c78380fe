import TestSupport
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Clients of a proxy whose upstream refuses connections.
@Suite(.tags(.servers), .timeLimit(.minutes(10))) struct UnreachableUpstreamTests {
    /// Toxiproxy's own tests require that `connect()` succeeds and that the first read returns the end of the stream.
    @Test(arguments: [false, true]) func aProxyOfToxiproxysAPIClosesItsClientWithAFIN(_ hasToxic: Bool) async throws {
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: try TestSocket.unusedPort())
            if hasToxic {
                let toxic = #"{"type":"latency","attributes":{"latency":5}}"#
                #expect(try await call("POST", "/proxies/p/toxics", toxic).status == 200)
            }
            try await blocking {
                for _ in 0..<200 {
                    let client = try TestSocket.connect(port: port)
                    #expect(try client.receive().isEmpty)
                }
            }
        }
    }

    @Test func aProxyCreatedWithALinkResetsItsClient() async throws {
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: try TestSocket.unusedPort(), #","link":{"profile":"wifi"}"#)
            try await blocking {
                let client = try TestSocket.connect(port: port)
                #expect(throws: TestSocket.Failure(call: "recv", code: ECONNRESET)) { try client.receive() }
            }
        }
    }
}
