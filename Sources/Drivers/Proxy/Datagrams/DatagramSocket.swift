#if os(Linux)
internal import CRelay
internal import Impairment
internal import LinkModel
internal import NIOCore
internal import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The buffer of an event loop for the datagrams of one system call.
final class DatagramBuffer {
    let bytes: UnsafeMutablePointer<CChar>
    let datagrams: UnsafeMutablePointer<crelay_datagram>
    let indices: UnsafeMutablePointer<Int32>

    /// One buffer per thread.
    nonisolated(unsafe) private static let buffers = ThreadSpecificVariable<DatagramBuffer>()

    /// The buffer of this thread.
    static var current: DatagramBuffer {
        if let known = buffers.currentValue { return known }
        let buffer = DatagramBuffer()
        buffers.currentValue = buffer
        return buffer
    }

    static let count = Int(CRELAY_DATAGRAMS_MAX)
    private static let room = Int(CRELAY_DATAGRAM_ROOM)

    init() {
        // Pages that no datagram has touched take no memory.
        bytes = .allocate(capacity: Self.count * Self.room)
        datagrams = .allocate(capacity: Self.count)
        datagrams.initialize(repeating: crelay_datagram(), count: Self.count)
        indices = .allocate(capacity: Self.count)
        indices.initialize(repeating: 0, count: Self.count)
    }

    deinit {
        bytes.deallocate()
        datagrams.deallocate()
        indices.deallocate()
    }

    /// A datagram, until the next read.
    func datagram(_ index: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: bytes + index * Self.room, count: Int(datagrams[index].length))
    }

    /// Returns a copy of a datagram without its first bytes.
    func payload(_ index: Int, droppingFirst count: Int = 0) -> ByteBuffer {
        ByteBuffer(bytes: UnsafeRawBufferPointer(rebasing: datagram(index).dropFirst(count)))
    }
}

/// The socket of a session to the server, and what belongs to it.
struct DatagramSocket {
    let flow: FlowID
    let number: Int
    let client: crelay_address
    /// The address of this machine to which the client sends, if the port is bound to all addresses.
    var local: crelay_address?
    let openedAt: NIODeadline
    /// The descriptor; `nil` before the server's name is looked up.
    var descriptor: CInt?
    /// Datagrams that wait for the descriptor.
    var waiting: [ByteBuffer] = []
    /// The record of the loop detector.
    var dial: LoopDetector.Dial?
    /// Whether the server's name is being looked up.
    var isConnecting = false
}

extension crelay_address {
    /// - Parameter isIPv4: Whether the socket that uses the address is one of IPv4.
    init(_ address: DatagramAddress, isIPv4: Bool) {
        self.init(
            high: address.high, low: address.low, zone: address.zone, port: address.port, is_ipv4: isIPv4 ? 1 : 0)
    }

    init?(_ address: SocketAddress) {
        self.init()
        let code = address.withSockAddr { pointer, _ in crelay_address_from(pointer, &self) }
        guard code == 0 else { return nil }
    }

    var key: DatagramAddress { key(route: 0) }

    func key(route: UInt32) -> DatagramAddress {
        DatagramAddress(high: high, low: low, zone: zone, port: port, route: route)
    }

    var isKnown: Bool { high != 0 || low != 0 }

    /// The address and the port in words; an IPv4 address is not shown as mapped.
    var socketAddress: SocketAddress? {
        let isMapped = high == 0 && low >> 32 == 0xFFFF
        var bytes = ByteBuffer()
        if isMapped {
            bytes.writeInteger(UInt32(truncatingIfNeeded: low))
        } else {
            bytes.writeInteger(high)
            bytes.writeInteger(low)
        }
        return try? SocketAddress(packedIPAddress: bytes, port: Int(port))
    }

    var endpoint: Endpoint? { socketAddress.map { Endpoint($0) } }

    static func == (left: crelay_address, right: crelay_address) -> Bool {
        left.low == right.low && left.high == right.high && left.port == right.port && left.zone == right.zone
    }
}
#endif
