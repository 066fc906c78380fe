// Runs a proxy with conditions on a free port, and prints its status for some seconds.

import Determinism
import LinkModel
import NIOPosix
import Proxy

let path = DirectionConditions(rate: .kilobits(780), delay: .milliseconds(100))
let proxy = try await Proxy.start(
    ProxyConfiguration(
        listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: 8000),
        conditions: Conditions(up: path, down: path)),
    on: MultiThreadedEventLoopGroup.singleton)
print("listening on \(proxy.address) -> 127.0.0.1:8000")
var reports = 0
for await event in await proxy.observe([.status]).events {
    guard case .status(let status) = event else { continue }
    print("\(status.connectionsOpen) connections open")
    reports += 1
    if reports == 3 { break }
}
await proxy.stop()
