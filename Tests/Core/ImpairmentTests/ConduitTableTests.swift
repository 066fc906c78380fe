import Determinism
import LinkModel
import NIOCore
import TCPModel
import Testing

@testable import Impairment

@Suite struct ConduitTableTests {
    @Test func identifiersOfEndedConnectionsAreUnknown() {
        var tcp = TCPLink(.clear, seed: 1)
        var table = ConduitTable()
        let first = tcp.open(at: .start)
        table.insert(Conduit(), first)
        let open = table.openConnections
        #expect(open == [first])
        table.remove(first)
        tcp.remove(first)
        let isOpen = table.contains(first)
        #expect(!isOpen)
        // A new connection uses the slot again.
        let second = tcp.open(at: .start)
        table.insert(Conduit(), second)
        let (secondIsOpen, firstIsOpen) = (table.contains(second), table.contains(first))
        #expect(second.index == first.index && secondIsOpen && !firstIsOpen)
    }

    @Test func conduitsKeepTheirContentsWhileTheTableGrows() {
        var tcp = TCPLink(.clear, seed: 1)
        var table = ConduitTable()
        var expected: [FlowID: Int64] = [:]
        func insert(_ number: Int64) {
            let id = tcp.open(at: .start)
            var conduit = Conduit()
            conduit.up.bytesSent = number
            conduit.down.bytes.append(ByteBuffer(bytes: [1, 2, 3]))
            table.insert(conduit, id)
            expected[id] = number
        }
        for number in 0..<200 {
            insert(Int64(number))
            if number % 3 == 0, let id = expected.keys.first(where: { $0.index == number / 3 }) {
                table.remove(id)
                tcp.remove(id)
                expected[id] = nil
            }
        }
        let open = table.openConnections
        #expect(Set(open) == Set(expected.keys))
        for id in open {
            let (number, bytes) = (table[id].up.bytesSent, table[id].down.bytes.count)
            #expect(number == expected[id] && bytes == 3)
        }
    }

    @Test func publicMethodsIgnoreEndedConnections() {
        var link = SharedLink()
        let id = link.open(at: .start)
        link.closeConnection(id, abortively: true, at: .start)
        while link.takeAction() != nil {}
        link.receive(.connected, on: id, at: .start)
        link.receive(.bytes(ByteBuffer(bytes: [1]), from: .client), on: id, at: .start)
        link.receive(.gone(.client), on: id, at: .start)
        link.closeConnection(id, abortively: false, at: .start)
        let (held, isNeeded, hasActions) = (link.bytesHeld(id, .up), link.needsUpstream(id), link.hasActions)
        #expect(held == 0 && !isNeeded && !hasActions)
    }

    @Test func internalUseOfAnEndedConnectionTraps() async {
        await #expect(processExitsWith: .failure) {
            var link = SharedLink()
            let id = link.open(at: .start)
            link.closeConnection(id, abortively: true, at: .start)
            link.deliver(id, .up)
        }
    }
}
