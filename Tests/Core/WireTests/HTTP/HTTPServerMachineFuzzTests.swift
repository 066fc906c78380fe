import Determinism
import HTTPTypes
import NIOCore
import TestSupport
import Testing

@testable import Wire

/// Random orders of a connection's events, with a handler that does anything it may do.
@Suite struct HTTPServerMachineFuzzTests {
    /// A driver that checks the order of actions.
    private struct Driver {
        var machine = HTTPServerMachine(at: .start)
        var now = Instant.start
        var writer: ConversationWriter
        var held = 0
        /// What the handler may do.
        var (hasRequest, mayRead, isReading, mayRespond, mayProduce) = (false, false, false, false, false)
        var (hasFinished, hasEnded) = (false, false)
        var (requests, responses, rejections) = (0, 0, 0)
        var problem: String?

        init(seed: UInt64) { writer = ConversationWriter(generator: SeededGenerator(seed: seed)) }

        mutating func drain() {
            var count = 0
            while let action = machine.takeAction() {
                count += 1
                if count > 10_000 { return problem = "the machine does not stop" }
                if hasEnded {
                    guard case .body = action else { return problem = "\(action) after the end" }
                }
                switch action {
                case .request:
                    if hasRequest { problem = "a request before the previous response" }
                    (hasRequest, mayRead, mayRespond, requests) = (true, true, true, requests + 1)
                case .bodyGrew:
                    if !isReading { problem = "an unwanted body" }
                    if writer.number(0...20) == 0 { machine.failBody(.budgetExceeded, at: now) }
                case .body:
                    if !isReading { problem = "a body that was not asked for" }
                    isReading = false
                case .write(let bytes):
                    if hasFinished { problem = "a write after FIN" }
                    if bytes.readableBytes == 0 { problem = "an empty write" }
                    held += bytes.readableBytes
                case .producePart:
                    if !hasRequest || held > 0 { problem = "a part is asked for too early" }
                    mayProduce = true
                case .responseWritten:
                    if held > 0 { problem = "a response is written too early" }
                    if hasRequest { responses += 1 } else { rejections += 1 }
                    (hasRequest, mayRead, mayRespond, mayProduce) = (false, false, false, false)
                    if writer.number(0...3) == 0 { machine.pauseInput(until: now + .milliseconds(20)) }
                case .closeOutput: hasFinished = true
                case .close, .abort: hasEnded = true
                }
            }
            // Only a handler may be waited for without a deadline.
            let waitsForHandler = machine.isHandling && hasRequest && !isReading && (held == 0 || mayRespond)
            if machine.nextDeadline == nil, !machine.isClosed, !waitsForHandler {
                problem = "a wait without a deadline"
            }
            if machine.isClosed, machine.nextDeadline != nil || machine.wantsInput { problem = "active after the end" }
            if let deadline = machine.nextDeadline, deadline <= now { problem = "a deadline in the past" }
        }

        mutating func step(_ inbox: inout ByteBuffer) {
            switch writer.number(0...15) {
            case 0...4:
                guard machine.wantsInput || writer.number(0...20) == 0 else { break }
                let size = min(inbox.readableBytes, writer.number(1...200))
                if let piece = inbox.readSlice(length: size), size > 0 { machine.received(piece, at: now) }
            case 5, 6:
                let count = writer.number(0...held)
                held -= count
                machine.written(count, at: now)
            case 7, 8:
                let count = held
                held = 0
                machine.written(count, at: now)
            case 9 where mayRead && hasRequest:
                (mayRead, isReading) = (false, true)
                machine.readBody(bytesMax: writer.number(0...3) == 0 ? 100 : nil, at: now)
            case 10 where mayRespond && !isReading, 11 where mayRespond && !isReading:
                (mayRespond, mayRead) = (false, false)
                let bodies: [HTTPServerResponseBody] = [
                    .text(""), .text("text"), .text(String(repeating: "x", count: 150_000)), .parts,
                    .omitted(length: 3),
                ]
                machine.respond(HTTPResponse(status: .ok), bodies[writer.number(0...4)], at: now)
            case 12 where mayProduce, 13 where mayProduce:
                mayProduce = false
                if writer.number(0...3) == 0 {
                    machine.endParts(at: now)
                } else {
                    machine.sendPart(["", "part"][writer.number(0...1)], at: now)
                }
            case 14: pass()
            case 15: rareEvent()
            default: break
            }
            drain()
        }

        private mutating func pass() {
            if writer.number(0...9) == 0, let deadline = machine.nextDeadline {
                now = max(now, deadline)
            } else {
                now = now + .milliseconds(Int64(writer.number(0...500)))
            }
            machine.advance(to: now)
        }

        private mutating func rareEvent() {
            switch writer.number(0...60) {
            case 0: machine.inputEnded(at: now)
            case 1:
                machine.connectionClosed(at: now)
                hasEnded = true
            case 2 where hasRequest: machine.abort(at: now)
            case 3 where hasRequest: machine.close(at: now)
            default: break
            }
        }
    }

    @Test func actionsKeepTheirOrder() {
        var (requests, responses, rejections, ends) = (0, 0, 0, 0)
        let seeds = randomSeeds(150)
        for seed in seeds {
            var driver = Driver(seed: seed)
            var inbox = ByteBuffer()
            for _ in 0..<driver.writer.number(1...6) {
                let method = ["GET", "HEAD", "POST", "PUT"][driver.writer.number(0...3)]
                var bytes = driver.writer.request(method)
                if driver.writer.number(0...9) == 0 { bytes[driver.writer.number(0...bytes.count - 1)] = 10 }
                inbox.writeBytes(bytes)
            }
            for _ in 0..<400 where driver.problem == nil { driver.step(&inbox) }
            #expect(driver.problem == nil, "seed \(seed)")
            requests += driver.requests
            responses += driver.responses
            rejections += driver.rejections
            ends += driver.hasEnded ? 1 : 0
        }
        // The random events reach all parts of the machine.
        let count = seeds.count
        #expect(requests > count && responses > count * 2 / 3 && rejections > count / 40 && ends > count * 3 / 20)
    }
}
