package import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Makes the close of a socket a RST (`SO_LINGER` with a time of zero) instead of a FIN.
package enum ResetOnClose {
    private static let atOnce = linger(l_onoff: 1, l_linger: 0)

    package static func arm(_ channel: any Channel) {
        guard let options = channel as? any SocketOptionProvider else { return }
        _ = options.setSoLinger(atOnce)
    }

    package static func arm(_ descriptor: CInt) {
        var option = atOnce
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}
