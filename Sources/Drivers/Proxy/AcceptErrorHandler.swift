internal import NIOCore

/// The channel handler of a listening socket that reports errors of `accept()`, such as EMFILE. NIO retries after a
/// pause.
final class AcceptErrorHandler: ChannelInboundHandler {
    typealias InboundIn = Channel

    private let onError: (IOError) -> Void

    init(_ onError: @escaping (IOError) -> Void) { self.onError = onError }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? IOError { onError(error) }
        context.fireErrorCaught(error)
    }
}
