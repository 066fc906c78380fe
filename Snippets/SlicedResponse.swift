// Drives a proxied connection in virtual time: a toxic slices what the server sends.

import Determinism
import Impairment
import LinkModel
import NIOCore

let slicer = Toxic(name: "slicer", stream: .down, effect: .slicer(averageSize: 8, sizeVariation: 0, delay: 50_000))
var link = SharedLink(seed: 7, toxics: [slicer])
let connection = link.open(at: .start)
link.receive(.connected, on: connection, at: .start)
link.receive(.bytes(ByteBuffer(string: "Hello from the server!"), from: .server), on: connection, at: .start)

while true {
    while let action = link.takeAction() {
        guard case .write(let bytes, to: .client) = action.action else { continue }
        print("\(Int(action.time.sinceStart.inMilliseconds)) ms: '\(String(buffer: bytes))'")
    }
    guard let deadline = link.nextDeadline else { break }
    link.advance(to: deadline)
}
