internal import HTTPTypes
internal import Proxy
internal import Wire

/// Forward proxies: rules, access and hosts.
extension ProxyRegistry {
    /// Returns the settings of a forward proxy.
    func forward(of name: String) throws(APIError) -> ForwardSettings {
        guard let settings = try proxy(named: name).forward else { throw Self.isNotForward }
        return settings
    }

    private static let isNotForward = APIError(
        .notFound, "this proxy has an upstream; only a forward proxy has rules and hosts")

    /// Changes the rules and maps that a request gives, for connections that are opened from now on.
    func setRules(_ request: ForwardRequest, of name: String) async throws(APIError) {
        try await withExclusiveAccess(to: name) { () async throws(APIError) in
            var proxy = try self.proxy(named: name)
            if proxy.forward == nil { throw Self.isNotForward }
            try await apply(request, to: &proxy, listen: nil)
            proxies[ByteKey(name)] = proxy
            log("rules changed", proxy)
        }
    }

    /// Changes the settings of a forward proxy that a request gives.
    ///
    /// - Parameter listen: A new listen address.
    func apply(
        _ request: ForwardRequest, to proxy: inout ManagedProxy, listen: Endpoint?
    ) async throws(APIError) {
        guard var settings = proxy.forward else { return }
        request.apply(to: &settings)
        try await replaceForward(of: &proxy, by: settings, listen: listen) { request.apply(to: &$0) }
    }

    /// Sets the settings of a forward proxy, and changes those of the running one.
    func replaceForward(
        of proxy: inout ManagedProxy, by settings: ForwardSettings, listen: Endpoint? = nil,
        _ change: @escaping @Sendable (inout ForwardSettings) -> Void
    ) async throws(APIError) {
        // The owner of an adopted proxy has decided about its clients.
        if proxy.isEnabled, !proxy.isAdopted, let address = listen ?? Endpoint(proxy.listen) {
            try settings.checkAccess(on: address)
        }
        proxy.forward = await proxy.running?.changeForward(change) ?? settings
    }

    /// Gives an existing forward proxy the rules and the access of a definition.
    func redefine(_ name: String, _ definition: ForwardSettings?) async throws(APIError) -> ManagedProxy {
        var proxy = try proxy(named: name)
        guard let definition, !proxy.isAdopted else { return proxy }
        try await replaceForward(of: &proxy, by: definition) { settings in
            let addresses = settings.addresses
            settings = definition
            settings.addresses = addresses
        }
        proxies[ByteKey(name)] = proxy
        return proxy
    }

    /// Restores the rules with which a forward proxy was created. Its clients remain.
    func restoreRules(of proxy: inout ManagedProxy) async {
        guard var settings = proxy.forward, let initial = proxy.initialForward else { return }
        let restore: @Sendable (inout ForwardSettings) -> Void = {
            $0.rules = initial.rules
            $0.conditions = initial.conditions
        }
        restore(&settings)
        proxy.forward = await proxy.running?.changeForward(restore) ?? settings
    }

    /// Adopts the rules of a running proxy that were changed without the API.
    func updateForward(of name: String) async {
        try? await withExclusiveAccess(to: name) { () async throws(APIError) in
            guard let settings = await proxies[ByteKey(name)]?.running?.forwardSettings() else { return }
            proxies[ByteKey(name)]?.forward = settings
        }
    }
}
