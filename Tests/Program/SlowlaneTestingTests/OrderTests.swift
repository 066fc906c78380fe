import Foundation
import SlowlaneTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The code under test: sends an order, and sends it again if there is no response.
func place(_ item: String, at url: URL) async throws {
    var request = URLRequest(url: url.appending(path: "orders"))
    request.httpMethod = "POST"
    request.httpBody = Data(item.utf8)
    request.setValue(UUID().uuidString, forHTTPHeaderField: "Idempotency-Key")
    let session = URLSession(configuration: .ephemeral)
    for _ in 1...3 {
        if (try? await session.data(for: request)) != nil { return }
    }
    throw URLError(.timedOut)
}

func orders(at url: URL) async throws -> [String] {
    let (data, _) = try await URLSession.shared.data(from: url.appending(path: "orders"))
    return try JSONDecoder().decode([String].self, from: data)
}

@Suite(.tags(.services), .network(upstream: { try await OrdersServer.address })) struct OrderTests {
    @Test(.network(.threeG)) func anOrderIsPlacedOnce() async throws {
        let network = try Network.current
        let before = try await orders(at: network.url)
        try await network.fault("POST /orders before-response reset")
        try await place("milk", at: network.url)
        #expect(try await orders(at: network.url) == before + ["milk"])
    }
}
