internal import ForwardProxy
internal import NIOCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension ConnectFailure {
    /// The reason for which a dial has failed.
    init(dialError error: any Error) {
        switch error {
        case ChannelError.connectTimeout: self = .connectionTimeout
        case let error as IOError:
            self =
                switch error.errnoCode {
                case ETIMEDOUT: .connectionTimeout
                case ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, EACCES, EPERM: .unreachable
                default: .connectionRefused
                }
        default: self = .connectionRefused
        }
    }
}
