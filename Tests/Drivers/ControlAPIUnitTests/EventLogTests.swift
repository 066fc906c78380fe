import Determinism
import TestSupport
import Testing
import Wire

@testable import ControlAPI

/// The buffer of events.
@Suite struct EventLogTests {
    @Test func eventsAreNumberedAndInTheFormatOfServerSentEvents() {
        var log = EventLog(firstID: 7)
        log.append(.link, "a", #"{"t":1}"#)
        log.append(.summary, "b", #"{"t":2}"#)
        #expect(
            log.read(after: 7, filter: nil, bytesMax: 1000)
                == .events(
                    text: "id: 8\nevent: link\ndata: {\"t\":1}\n\nid: 9\nevent: summary\ndata: {\"t\":2}\n\n", last: 9))
    }

    @Test func aFilterLeavesOutOtherProxiesAndKeepsEventsWithoutProxy() {
        var log = EventLog(firstID: 0)
        log.append(.link, "a", "1")
        log.append(.recording, nil, "2")
        log.append(.link, "b", "3")
        let expected = EventLog.text(1, .link, "1") + EventLog.text(2, .recording, "2")
        #expect(log.read(after: 0, filter: "a", bytesMax: 1000) == .events(text: expected, last: 3))
    }

    @Test func positionsOfOtherProcessesAreGapsOfUnknownLength() {
        let log = EventLog(firstID: 100)
        #expect(log.read(after: 99, filter: nil, bytesMax: 1) == .gap(missed: nil))
        #expect(log.read(after: 101, filter: nil, bytesMax: 1) == .gap(missed: nil))
        #expect(log.read(after: 100, filter: nil, bytesMax: 1) == .events(text: "", last: 100))
    }

    @Test func noPositionSurvivesTheRemovalOfAllEvents() {
        var log = EventLog(firstID: 5)
        log.removeAll()
        #expect(log.read(after: 5, filter: nil, bytesMax: 1) == .gap(missed: 1))
        log.append(.link, nil, "1")
        log.removeAll()
        #expect(log.read(after: 7, filter: nil, bytesMax: 1) == .gap(missed: 1))
    }

    /// A reader that reads in small parts gets each event once and in order, or is told how many it has missed.
    @Test(arguments: 1...40) func readersGetEachEventOrItsLoss(seed: UInt64) {
        var random = RandomStream(seed: seed, "log")
        let limits = EventLog.Limits(
            countMax: 1 + Int(random.integer(below: 20)), bytesMax: 60 + Int(random.integer(below: 1000)))
        var log = EventLog(firstID: 10, limits: limits)
        var position: Int64 = 10
        var appended = 0
        var accounted = 0
        for _ in 0..<300 {
            if random.bool(probability: 0.6) {
                appended += 1
                let filling = String(repeating: "x", count: Int(random.integer(below: 80)))
                log.append(.exchange, nil, "\"\(appended) \(filling)\"")
            } else {
                switch log.read(after: position, filter: nil, bytesMax: Int(random.integer(below: 200))) {
                case .gap(let missed):
                    // The next event is read next.
                    position += missed ?? 0
                    #expect(log.read(after: position, filter: nil, bytesMax: 1) == .events(text: "", last: position))
                    accounted += Int(missed ?? 0)
                case .events(let text, let last):
                    let numbers = text.split(separator: "\n").filter { $0.hasPrefix("data: ") }.map {
                        Int($0.dropFirst(7).prefix { $0.isNumber })
                    }
                    for number in numbers {
                        accounted += 1
                        #expect(number == accounted)
                    }
                    #expect(last == position + Int64(numbers.count))
                    position = last
                }
            }
            #expect(log.count <= limits.countMax)
            #expect(log.byteCount <= limits.bytesMax || log.count == 1)
        }
        #expect(accounted <= appended && position <= log.lastID)
        #expect(position == 10 + Int64(accounted))
    }
}

/// The parser of the stream.
@Suite struct EventStreamParserTests {
    private static let text =
        "\u{FEFF}".dropFirst()
        + "id: 1\nevent: link\ndata: {\"a\":\ndata: 1}\n\n: comment\n\nid:2\r\ndata: x\r\n\r\nid: 3\rdata: y\r\rdata: lost"

    @Test(arguments: [1, 2, 3, 7, 1000]) func eventsDoNotDependOnTheSizesOfReads(size: Int) throws {
        var parser = EventStreamParser()
        var events: [EventStreamParser.Event] = []
        var rest = Array(Self.text.utf8)[...]
        while !rest.isEmpty {
            events += try parser.receive(rest.prefix(size))
            rest = rest.dropFirst(size)
        }
        #expect(events.map(\.id) == ["1", "2", "3"])
        #expect(events.map(\.type) == ["link", "", ""])
        #expect(events.map(\.data) == ["{\"a\":\n1}", "x", "y"])
    }

    @Test func anEventHasALimit() throws {
        var parser = EventStreamParser(bytesMax: 20)
        for _ in 0..<10 { _ = try parser.receive(Array("data: 1\n\n: comment\n".utf8)) }
        #expect(throws: EventStreamParser.TooLongError.self) {
            _ = try parser.receive(Array("data: 12345678901234567890".utf8))
        }
    }
}
