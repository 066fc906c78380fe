// Measures a download of 100 kB over a slow, lossy link in virtual time.

import Determinism
import LinkModel
import TCPModel

var path = DirectionConditions(rate: .kilobits(780), delay: .milliseconds(100))
path.loss = Probability(partsPerMillion: 10_000)!
var link = TCPLink(Conditions(up: path, down: path), seed: 7)
let connection = link.open(at: .start)
link.send(100_000, on: connection, .down, at: .start)

var received = 0
while received < 100_000, let deadline = link.nextDeadline {
    _ = link.advance(to: deadline)
    while let event = link.takeEvent() {
        guard case .delivered(let bytes, .down) = event.event else { continue }
        received += bytes
        if received == 100_000 { print("100 kB after \(Int(event.time.sinceStart.inMilliseconds)) ms") }
    }
}
print("\(link.counters(.down).packetsLost) of \(link.counters(.down).packets) packets lost")
