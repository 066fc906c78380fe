import Impairment
import NIOCore
import Testing

@Suite struct StreamComparisonTests {
    @Test func aStreamIsTheSameWhateverItsPieces() {
        var comparison = StreamComparison()
        comparison.entered(ByteBuffer(string: "GET / "))
        comparison.entered(ByteBuffer(string: "HTTP/1.1"))
        for piece in ["G", "ET / HT", "TP/1."] { #expect(comparison.left(ByteBuffer(string: piece)) == nil) }
        #expect(comparison.offset == 13)
    }

    @Test func aChangedOrAddedByteIsFound() {
        func offset(_ sent: String, _ received: String...) -> Int? {
            var comparison = StreamComparison()
            comparison.entered(ByteBuffer(string: sent))
            return received.compactMap { comparison.left(ByteBuffer(string: $0)) }.first
        }
        #expect(offset("abc", "ab", "d") == 2)
        #expect(offset("abc", "abc", "d") == 3)
        #expect(offset("abc", "ab") == nil)
        #expect(offset("abc", "x", "y") == 0, "the first difference ends the comparison")
        var stopped = StreamComparison()
        stopped.stop()
        #expect(stopped.left(ByteBuffer(string: "x")) == nil)
    }
}
