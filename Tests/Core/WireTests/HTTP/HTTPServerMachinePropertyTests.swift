import Determinism
import Foundation
import HTTPTypes
import NIOCore
import TestSupport
import Testing

@testable import Wire

/// Properties of the server machine that hold for all input.
@Suite struct HTTPServerMachinePropertyTests {
    /// A driver whose handler reads each body and responds with its length, and which checks invariants.
    private struct Driver {
        var machine = HTTPServerMachine(at: .start)
        var now = Instant.start
        var output: [UInt8] = []
        var bodies: [[UInt8]] = []
        var inbox = ByteBuffer()
        var isEnded = false
        private var hasClosed = false
        private var hasFinished = false

        mutating func deliver(_ bytes: ByteBuffer) {
            var bytes = bytes
            inbox.writeBuffer(&bytes)
            drain()
            while machine.wantsInput, let piece = inbox.readSlice(length: min(4096, inbox.readableBytes)),
                piece.readableBytes > 0
            {
                machine.received(piece, at: now)
                drain()
            }
        }

        mutating func drain() {
            while let action = machine.takeAction() {
                precondition(!hasClosed, "an action after the end of the connection")
                switch action {
                case .request: machine.readBody(at: now)
                case .bodyGrew, .producePart, .responseWritten: break
                case .body(let result):
                    let bytes = (try? result.get()) ?? []
                    if case .success = result { bodies.append(bytes) }
                    let status = if case .success = result { 200 } else { 400 }
                    machine.respond(HTTPResponse(status: .init(code: status)), .text("\(bytes.count)"), at: now)
                case .write(let bytes):
                    precondition(!hasFinished, "a write after FIN")
                    output += bytes.readableBytesView
                    machine.written(bytes.readableBytes, at: now)
                case .closeOutput: hasFinished = true
                case .close, .abort: hasClosed = true
                }
            }
            // This handler is never waited for, so the client is: its time must be limited.
            precondition(machine.isClosed == (machine.nextDeadline == nil), "a wait without a deadline")
        }

        mutating func end() {
            machine.inputEnded(at: now)
            drain()
        }
    }

    @Test func cutsDoNotChangeTheResponses() {
        for seed in randomSeeds(100) { checkCuts(seed) }
    }

    private func checkCuts(_ seed: UInt64) {
        var writer = ConversationWriter(generator: SeededGenerator(seed: seed))
        let methods = ["GET", "HEAD", "POST", "PUT", "DELETE"]
        var bytes = (0..<writer.number(1...6)).flatMap { _ in
            writer.request(methods[writer.number(0...methods.count - 1)])
        }
        // Every second conversation has random errors.
        if seed % 2 == 1 {
            for _ in 0..<writer.number(1...3) {
                let index = writer.number(0...bytes.count - 1)
                switch writer.number(0...2) {
                case 0: bytes[index] = UInt8(writer.number(0...255))
                case 1: bytes.insert(UInt8(writer.number(0...255)), at: index)
                default: if bytes.count > 1 { bytes.remove(at: index) }
                }
            }
        }
        var whole = Driver()
        whole.deliver(ByteBuffer(bytes: bytes))
        var single = Driver()
        for byte in bytes { single.deliver(ByteBuffer(bytes: [byte])) }
        #expect(single.output == whole.output && single.bodies == whole.bodies, "seed \(seed)")
        var cut = Driver()
        for piece in writer.pieces(bytes) { cut.deliver(piece) }
        #expect(cut.output == whole.output && cut.bodies == whole.bodies, "seed \(seed)")
        if seed % 2 == 0 { #expect(!whole.output.isEmpty && whole.machine.phase == .idle, "seed \(seed)") }
        whole.end()
        cut.end()
        #expect(cut.output == whole.output && cut.machine.isClosed && whole.machine.isClosed, "seed \(seed)")
    }

    @Test func everyConnectionEndsWhenTheClientStops() {
        for seed in UInt64(0)..<400 {
            var writer = ConversationWriter(generator: SeededGenerator(seed: seed))
            var bytes = writer.request("POST") + writer.request("PUT")
            bytes.removeLast(writer.number(0...bytes.count - 1))
            var driver = Driver()
            for piece in writer.pieces(bytes) { driver.deliver(piece) }
            var steps = 0
            while let deadline = driver.machine.nextDeadline, steps < 10 {
                driver.now = max(driver.now, deadline)
                driver.machine.advance(to: driver.now)
                driver.drain()
                steps += 1
            }
            #expect(driver.machine.isClosed && driver.now <= .start + .seconds(120), "seed \(seed)")
        }
    }

    @Test func datesAreThoseOfTheCalendar() {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        var generator = SeededGenerator(seed: 1)
        let random = (0..<3000).map { _ in Int64.random(in: 0...253_402_300_799, using: &generator) }
        // Leap days, ends of years, and the example of RFC 9110.
        for time in [0, 951_782_399, 951_782_400, 4_107_542_399, 4_107_542_400, 784_111_777, 253_402_300_799] + random {
            #expect(HTTPDate.text(unixTime: time) == format.string(from: Date(timeIntervalSince1970: Double(time))))
        }
        #expect(HTTPDate.text(unixTime: 784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate.text(unixTime: .min) == HTTPDate.text(unixTime: 0))
        #expect(HTTPDate.text(unixTime: .max) == "Fri, 31 Dec 9999 23:59:59 GMT")
    }
}
