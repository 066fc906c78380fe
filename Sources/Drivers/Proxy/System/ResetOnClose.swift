package import NIOCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The socket option that makes closing send a RST instead of a FIN (`SO_LINGER` with a time of 0 s).
package enum ResetOnClose {
    private static let zeroLinger = linger(l_onoff: 1, l_linger: 0)

    package static func arm(_ channel: any Channel) {
        guard let options = channel as? any SocketOptionProvider else { return }
        _ = options.setSoLinger(zeroLinger)
    }

    package static func arm(_ descriptor: CInt) {
        var option = zeroLinger
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}
