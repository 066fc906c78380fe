internal import HTTPTypes
internal import Proxy

/// Lookups of listen addresses.
extension ProxyRegistry {
    enum LookupResult {
        case found(Endpoint)
        case failed(reason: String)
    }

    /// Returns the listen address of a new proxy; `nil` if the proxy is disabled.
    func listenAddress(of request: ProxyRequest) async throws(APIError) -> Endpoint? {
        request.isEnabled ? try await listenAddress(request.listen) : nil
    }

    /// Returns the resolved listen address of a text.
    ///
    /// - Parameter isStart: Whether the address is for a start and not for an update; the error texts differ, as in Go.
    func listenAddress(_ text: String, isStart: Bool = true) async throws(APIError) -> Endpoint {
        let prefix = isStart ? "listen tcp: " : ""
        if let error = ListenErrorText.ofSyntax(text) { throw APIError(.internalServerError, prefix + error) }
        switch await lookup(text) {
        case .found(let endpoint): return endpoint
        case .failed(let reason):
            throw APIError(.internalServerError, prefix + ListenErrorText.ofLookup(text, reason: reason))
        }
    }

    private func lookup(_ text: String) async -> LookupResult {
        if isClosed { return .failed(reason: Self.isStopping.text) }
        lookupCount += 1
        let number = lookupCount
        return await withCheckedContinuation { continuation in
            pendingLookups[number] = continuation
            // The task may outlive `closeAll()`, which must not wait for name servers.
            Task { finishLookup(number, await Self.result(of: text, resolver)) }
        }
    }

    private func finishLookup(_ number: Int, _ result: LookupResult) {
        pendingLookups.removeValue(forKey: number)?.resume(returning: result)
    }

    /// Fails every pending lookup.
    func cancelLookups() {
        for number in pendingLookups.keys.sorted() { finishLookup(number, .failed(reason: Self.isStopping.text)) }
    }

    private static func result(of text: String, _ resolver: Resolver) async -> LookupResult {
        do {
            return .found(try await resolver(text))
        } catch {
            return .failed(reason: error.reason)
        }
    }
}
