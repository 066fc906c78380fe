internal import NIOCore

/// Tells of clients that the system does not let in, as when no more files may be open; SwiftNIO waits a moment and tries
/// again.
final class AcceptFailures: ChannelInboundHandler {
    typealias InboundIn = Channel

    private let tell: (IOError) -> Void

    init(_ tell: @escaping (IOError) -> Void) { self.tell = tell }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? IOError { tell(error) }
        context.fireErrorCaught(error)
    }
}
