internal import Determinism
internal import HTTPSockets
internal import LinkModel
internal import NIOCore
internal import Proxy
internal import TCPModel

/// The measured time of one transfer under the conditions of a profile, and the time computed from its figures.
struct ProfileMeasurement: Sendable {
    /// The profile's name.
    let profile: String
    /// The bytes echoed.
    let size: Int
    /// The computed time, see ``TCPModel/Workload/EchoEstimate``.
    let expected: Nanoseconds
    /// The median of the measured times.
    let measured: Nanoseconds

    /// Whether both times agree within 3 % or 2 ms.
    var isWithinTolerance: Bool {
        let tolerance = max(Nanoseconds.milliseconds(2), Nanoseconds(expected.count * 3 / 100))
        return abs((measured - expected).count) <= tolerance.count
    }

    /// The reason why a profile cannot be measured, or a measurement failed.
    struct MeasurementError: Error, CustomStringConvertible {
        let description: String
        /// Whether no echo can pass under the profile.
        let isUnsuitableProfile: Bool
    }

    /// Sizes of the echoed transfers in bytes: both fit into TCP's initial window of ten segments.
    private static let sizes = [200, 10_240]
    /// Transfers with a shorter expected time are repeated `shortFactor` times as often, because scheduling delays of
    /// the machine affect them more.
    private static let shortMax = Nanoseconds.milliseconds(100)
    private static let shortFactor = 7
    /// The shortest timeout of one echo.
    private static let timeoutMin = Nanoseconds.seconds(60)

    /// Throws if no echo can pass under the conditions.
    static func check(_ link: Timeline.NamedConditions) throws(MeasurementError) {
        let conditions = link.conditions
        let reason: String
        switch conditions.connectionPolicy {
        case .offline: reason = "it refuses all connections (ECONNREFUSED)"
        case .dns: reason = "its DNS failure refuses all connections (ECONNREFUSED)"
        case .portal: reason = "its captive portal responds instead of the server"
        case .open:
            guard conditions.up.loss == .one || conditions.down.loss == .one else { return }
            reason = "it loses all packets (100 % loss)"
        }
        throw MeasurementError(
            description: "cannot measure '\(link.name)': \(reason); choose a profile that lets an echo through",
            isUnsuitableProfile: true)
    }

    /// Measures a profile with echoes through a proxy of its own.
    ///
    /// - Parameters:
    ///   - trials: The number of echoes of each size; seven times as many if one takes less than 100 ms.
    ///   - onResult: Called after each size.
    static func measure(
        _ link: Timeline.NamedConditions, trials: Int, on group: any EventLoopGroup,
        onResult: (ProfileMeasurement) -> Void
    ) async throws {
        try check(link)
        let server = try await EchoServer.start(on: group)
        let proxy = try await Proxy.start(
            ProxyConfiguration(
                listen: Endpoint(host: "127.0.0.1", port: 0), upstream: server.address, conditions: link.conditions),
            on: group)
        do {
            for size in sizes {
                onResult(try await measure(link, size, trials: trials, through: proxy, on: group))
            }
        } catch {
            await proxy.stop(grace: .zero)
            try? await server.stop()
            throw error
        }
        await proxy.stop(grace: .zero)
        try await server.stop()
    }

    private static func measure(
        _ link: Timeline.NamedConditions, _ size: Int, trials: Int, through proxy: Proxy, on group: any EventLoopGroup
    ) async throws -> ProfileMeasurement {
        let expected = EchoEstimate.time(ofBytes: size, under: link.conditions)
        let timeout = max(timeoutMin, Nanoseconds(expected.count * 20))
        var times: [Nanoseconds] = []
        for _ in 0..<(expected < shortMax ? trials * shortFactor : trials) {
            do {
                times.append(
                    try await EchoClient.time(
                        ofBytes: size, through: proxy.address, timeout: .nanoseconds(timeout.count), on: group))
            } catch {
                let reason =
                    error is EchoClient.TimeoutError
                    ? "no complete echo within \(timeout.count / 1_000_000_000) s" : "\(SystemErrorDescription(error))"
                throw MeasurementError(
                    description: "measuring '\(link.name)' failed: an echo of \(size) B through the proxy: \(reason)",
                    isUnsuitableProfile: false)
            }
            // The next connection needs the link to itself, so the FINs of this one must arrive first.
            let deadline = ContinuousClock.now + .nanoseconds(timeout.count)
            while await proxy.status().connectionsOpen > 0 {
                guard ContinuousClock.now < deadline else {
                    throw MeasurementError(
                        description: "measuring '\(link.name)' failed: a connection was still open "
                            + "\(timeout.count / 1_000_000_000) s after its echo",
                        isUnsuitableProfile: false)
                }
                try await Task.sleep(for: .milliseconds(5))
            }
        }
        return ProfileMeasurement(
            profile: link.name, size: size, expected: expected, measured: times.sorted()[times.count / 2])
    }
}
