import Foundation

/// A gate for threads that block.
final class BlockingGate: Sendable {
    private let condition = NSCondition()
    private nonisolated(unsafe) var isOpen = false

    func open() {
        condition.lock()
        isOpen = true
        condition.broadcast()
        condition.unlock()
    }

    func wait() {
        condition.lock()
        while !isOpen { condition.wait() }
        condition.unlock()
    }
}
