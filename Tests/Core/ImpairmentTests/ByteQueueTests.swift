import NIOCore
import TestSupport
import Testing

@testable import Impairment

@Suite struct ByteQueueTests {
    @Test(arguments: 0..<20) func bytesLeaveInTheOrderInWhichTheyEntered(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = ByteQueue()
        var model: [UInt8] = []
        for step in 0..<300 {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<5:
                let bytes = (0..<Int.random(in: 0...3000, using: &generator)).map {
                    UInt8(truncatingIfNeeded: $0 &+ step)
                }
                // Buffers as a socket read leaves them: almost full or almost empty.
                var buffer = ByteBufferAllocator().buffer(
                    capacity: Bool.random(using: &generator) ? 65536 : bytes.count)
                buffer.writeBytes(bytes)
                queue.append(buffer)
                model += bytes
            case 5:
                let size = Int.random(in: 0...min(model.count, 5000), using: &generator)
                queue.dropLast(size)
                model.removeLast(size)
            case 6:
                let size = Int.random(in: 0...min(model.count, 5000), using: &generator)
                queue.drop(size)
                model.removeFirst(size)
            default:
                let limit = Int.random(in: 1...4000, using: &generator)
                guard let piece = queue.takePiece(atMost: limit) else {
                    #expect(model.isEmpty, "seed \(seed)")
                    continue
                }
                #expect(piece.readableBytes > 0 && piece.readableBytes <= limit)
                #expect(Array(piece.readableBytesView) == Array(model.prefix(piece.readableBytes)), "seed \(seed)")
                model.removeFirst(piece.readableBytes)
            }
            #expect(queue.count == model.count, "seed \(seed)")
        }
    }

    @Test func tinyChunksShareBuffers() {
        var queue = ByteQueue()
        for _ in 0..<10_000 {
            var buffer = ByteBufferAllocator().buffer(capacity: 2048)
            buffer.writeInteger(UInt8(1))
            queue.append(buffer)
        }
        var pieces = 0
        while queue.takePiece(atMost: .max) != nil { pieces += 1 }
        #expect(pieces < 100)
    }
}
