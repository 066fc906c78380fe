import HTTPSockets
import HTTPTypes
import TestSupport
import Testing

/// The messages of addresses that cannot be bound.
@Suite(.tags(.services)) struct BindErrorTests {
    private static func start(host: String, port: Int = 0) async throws(HTTPServer.BindError) -> HTTPServer {
        try await HTTPServer.start(host: host, port: port, addressOption: "--port", limits: .init()) { _, _ in
            HTTPServer.Response(HTTPResponse(status: .ok), .text(""))
        }
    }

    private static func error(host: String, port: Int = 0) async -> HTTPServer.BindError? {
        do throws(HTTPServer.BindError) {
            await (try start(host: host, port: port)).stop()
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: ["127.0.0.1", "::1"]) func aTakenPortIsNamed(host: String) async throws {
        let server = try await Self.start(host: host)
        let address = host.contains(":") ? "[\(host)]:\(server.port)" : "\(host):\(server.port)"
        let error = await Self.error(host: host, port: server.port)
        #expect(
            error?.description
                == "cannot bind \(address): address already in use (EADDRINUSE); choose another port with --port")
        await server.stop()
    }

    @Test func anAddressOfAnotherMachineIsNamed() async {
        // RFC 5737 reserves the address for documentation.
        let error = await Self.error(host: "192.0.2.1", port: 8000)
        #expect(error?.description.hasPrefix("cannot bind 192.0.2.1:8000: ") == true)
        #expect(error?.cause.hasSuffix("(EADDRNOTAVAIL)") == true)
        #expect(error?.remedy == "choose an address of this machine with --port")
    }

    @Test func anUnknownHostNameIsNamed() async {
        let error = await Self.error(host: "no such host")
        #expect(
            error?.description
                == "cannot bind no such host:0: the host name cannot be resolved; choose another address with --port")
    }
}
