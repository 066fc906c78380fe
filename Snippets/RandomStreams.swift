// Draws from named random streams: what one stream draws does not change the others.

import Determinism

var losses = RandomStream(seed: 7, "link/up/loss")
var delays = RandomStream(seed: 7, "link/up/jitter")
let pattern = (0..<40).map { _ in losses.bool(probability: 0.1) ? "x" : "." }.joined()
print("lost packets: \(pattern)")
print("delay of the first packet: \(delays.integer(below: 1000)) µs")
print("hash of 'slowlane': \(FNV1a.digest("slowlane".utf8))")
