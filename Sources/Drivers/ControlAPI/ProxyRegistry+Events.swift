internal import Determinism
internal import LinkModel
internal import Proxy
internal import Synchronization
internal import Wire

/// Reports of changes, and links that are reset after a time.
extension ProxyRegistry {
    /// Records a change of a proxy: since when it is impaired, and the events of the change.
    func report(_ name: ByteKey, by cause: ChangeCause) async {
        let isImpaired = proxies[name]?.isImpaired ?? false
        if isImpaired != (proxies[name]?.impairedSince != nil) {
            proxies[name]?.impairedSince = isImpaired ? ProcessClock.now : nil
        }
        updateConditionsHeader(name, isImpaired: isImpaired)
        let isRecording = recording != nil && recording?.ended == nil
        guard feed.isActive || isRecording else { return }
        let status = await proxies[name]?.running?.status()
        if isRecording { record(name, status) }
        feed.update(name, proxies[name], status, by: cause)
    }

    /// Reports every proxy and the recording to the feed of events.
    func reportAll() async {
        publishRecording()
        for name in proxies.keys.sorted() {
            try? await withExclusiveAccess(to: name.text, by: .start, waitingMax: .max) { () async throws(APIError) in }
        }
    }

    /// The maximum number of proxies in the header.
    private static let namesInHeaderMax = 8

    private func updateConditionsHeader(_ name: ByteKey, isImpaired: Bool) {
        let index = impairedProxies.firstIndex { $0 >= name } ?? impairedProxies.endIndex
        let isListed = index < impairedProxies.endIndex && impairedProxies[index] == name
        guard isListed != isImpaired else { return }
        if isImpaired { impairedProxies.insert(name, at: index) } else { impairedProxies.remove(at: index) }
        var names = impairedProxies.prefix(Self.namesInHeaderMax).map { APIClient.path($0.text).dropFirst() }
        if impairedProxies.count > names.count { names.append("...") }
        let text = names.isEmpty ? nil : names.joined(separator: ", ")
        conditionsHeader.withLock { $0 = text }
    }

    /// Restores the initial link of a proxy at a time, unless its link is set again before.
    func scheduleReset(of name: String, at time: Int64) {
        let delay = max(0, time.subtractingSaturating(ProcessClock.now))
        // Ends by itself; a later setting changes `resetAt`.
        Task { [weak self] in
            try? await Task.sleep(for: .nanoseconds(delay))
            await self?.resetLink(of: name, scheduledAt: time)
        }
    }

    private func resetLink(of name: String, scheduledAt time: Int64) async {
        try? await withExclusiveAccess(to: name, by: .resetAfter, waitingMax: .max) { () async throws(APIError) in
            guard let proxy = proxies[ByteKey(name)], proxy.resetAt == time else { return }
            proxies[ByteKey(name)]?.link = proxy.initialLink
            proxies[ByteKey(name)]?.pausedTimeline = nil
            proxies[ByteKey(name)]?.resetAt = nil
            await apply(proxy.initialLink, to: proxy.running)
            log("link reset after its time", proxy)
        }
    }
}
