internal import NIOCore

/// Stops accepting while a proxy is full: further clients wait in the kernel's backlog.
final class AcceptGate: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias OutboundIn = any Channel

    private var context: ChannelHandlerContext?
    private var isOpen: Bool
    private var readIsOwed = false

    init(isOpen: Bool) { self.isOpen = isOpen }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func read(context: ChannelHandlerContext) {
        if isOpen {
            context.read()
        } else {
            readIsOwed = true
        }
    }

    func set(open: Bool) {
        isOpen = open
        if open && readIsOwed {
            readIsOwed = false
            context?.read()
        }
    }
}
