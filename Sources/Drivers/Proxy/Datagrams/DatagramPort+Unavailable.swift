#if !os(Linux)
internal import Impairment
internal import LinkModel
internal import NIOCore

#if canImport(Darwin)
import Darwin
#endif

/// The datagrams of a proxy on systems without the calls that ``DatagramPort`` uses. It cannot be created.
final class DatagramPort {
    static let isAvailable = false

    let address: SocketAddress

    init(_ requested: SocketAddress, _ core: ProxyCore) throws {
        address = requested
        throw IOError(errnoCode: EOPNOTSUPP, reason: "bind")
    }

    var status: DatagramStatus { DatagramStatus() }
    var connections: [ConnectionStatus] { [] }

    func execute(_ action: SharedLink.TimedDatagramAction) {}
    func updateRefusal() {}
    func end(_ flow: FlowID) -> Bool { false }
    func stopReading() {}
    func close() {}
}

/// The datagrams of a forward proxy on these systems. They cannot be created.
final class ForwardDatagrams {
    static let isAvailable = false

    final class Port {}

    init(_ core: ProxyCore) throws { throw IOError(errnoCode: EOPNOTSUPP, reason: "bind") }

    func execute(_ action: SharedLink.TimedDatagramAction, on driver: LinkDriver) {}
    func updateRefusal() {}
    func stopReading() {}
    func closeAll() {}
}
#endif
