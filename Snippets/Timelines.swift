// Follows a timeline: 3G, then a tunnel, then 3G again.

import Determinism
import LinkModel

let path = DirectionConditions(rate: .kilobits(780), delay: .milliseconds(100))
var lost = path
lost.loss = .one
let good = Timeline.NamedConditions("3g", Conditions(up: path, down: path))
let tunnel = Timeline.NamedConditions("tunnel", Conditions(up: lost, down: lost))
let timeline = try Timeline([
    .init(at: .zero, .hold(good)), .init(at: .seconds(20), .hold(tunnel)), .init(at: .seconds(50), .hold(good)),
])

var run = TimelineRun(timeline, startingAt: .start, seed: 7)
print("0 s: \(run.name)")
while let deadline = run.nextDeadline {
    _ = run.advance(to: deadline)
    print("\(Int(deadline.sinceStart.inSeconds)) s: \(run.name)")
}
