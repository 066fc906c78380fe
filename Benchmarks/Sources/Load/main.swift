// The load generator of the proxy comparison: blocking sockets and threads, independent of the measured code.
//
//     Load server                          prints two ports: one whose first byte selects the behaviour, one that only accepts
//     Load bulk PORT STREAMS SECONDS       prints bytes and seconds of downloads
//     Load ping PORT COUNT                 prints p50 and p99 of 1-byte exchanges in microseconds
//     Load connections PORT CONCURRENCY SECONDS  prints connections per second, with one exchange each
//     Load copy UPSTREAM                   prints a port; copies between blocking sockets: the minimum cost of copying
//     Load hold PORT COUNT MEGABYTES       opens connections, downloads on each, prints 'ready', and holds them until its input ends

import Foundation

let arguments = CommandLine.arguments.dropFirst().map { $0 }
func number(_ index: Int) -> Int { Int(arguments[index])! }

func address(_ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
}

func makeSocket() -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { fatalError("socket: \(String(cString: strerror(errno)))") }
    return descriptor
}

func setNoDelay(_ descriptor: Int32) {
    var on: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
}

func dial(_ port: Int) -> Int32 {
    let descriptor = makeSocket()
    var to = address(port)
    let result = withUnsafePointer(to: &to) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, 16) }
    }
    guard result == 0 else { fatalError("connect: \(String(cString: strerror(errno)))") }
    setNoDelay(descriptor)
    return descriptor
}

func makeListener() -> (descriptor: Int32, port: Int) {
    let descriptor = makeSocket()
    var at = address(0)
    var size = socklen_t(16)
    let isUp = withUnsafeMutablePointer(to: &at) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, 16) == 0 && listen(descriptor, 4096) == 0 && getsockname(descriptor, $0, &size) == 0
        }
    }
    guard isUp else { fatalError("listen: \(String(cString: strerror(errno)))") }
    return (descriptor, Int(UInt16(bigEndian: at.sin_port)))
}

func sendAll(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Bool {
    var sent = 0
    while sent < count {
        let result = send(descriptor, bytes + sent, count - sent, Int32(MSG_NOSIGNAL))
        if result <= 0 { return false }
        sent += result
    }
    return true
}

func receiveAll(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer, _ capacity: Int, _ count: Int) -> Bool {
    var received = 0
    while received < count {
        let result = recv(descriptor, buffer, min(capacity, count - received), 0)
        if result <= 0 { return false }
        received += result
    }
    return true
}

let blockBytes = 256 << 10
func allocateBlock() -> UnsafeMutableRawPointer { .allocate(byteCount: blockBytes, alignment: 64) }

func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

func serve(_ descriptor: Int32, _ mode: UInt8, _ buffer: UnsafeMutableRawPointer) {
    switch mode {
    case UInt8(ascii: "S"): while sendAll(descriptor, buffer, blockBytes) {}
    case UInt8(ascii: "E"):
        while case let count = recv(descriptor, buffer, blockBytes, 0), count > 0, sendAll(descriptor, buffer, count) {}
    case UInt8(ascii: "C"): _ = sendAll(descriptor, buffer, 1)
    default:
        // The connection stays open.
        for _ in 0..<4 where !sendAll(descriptor, buffer, blockBytes) { return }
        return
    }
    close(descriptor)
}

/// Prints without buffering.
func printLine(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

func server() -> Never {
    let (active, activePort) = makeListener()
    let (idle, idlePort) = makeListener()
    printLine("\(activePort) \(idlePort)")
    Thread.detachNewThread { while accept(idle, nil, nil) >= 0 {} }
    for _ in 0..<48 {
        Thread.detachNewThread {
            let buffer = allocateBlock()
            while case let descriptor = accept(active, nil, nil), descriptor >= 0 {
                setNoDelay(descriptor)
                var mode: UInt8 = 0
                guard recv(descriptor, &mode, 1, 0) == 1 else {
                    close(descriptor)
                    continue
                }
                let behaviour = mode
                if mode == UInt8(ascii: "S") || mode == UInt8(ascii: "E") {
                    Thread.detachNewThread {
                        let own = allocateBlock()
                        serve(descriptor, behaviour, own)
                        own.deallocate()
                    }
                } else {
                    serve(descriptor, mode, buffer)
                }
            }
        }
    }
    while readLine() != nil {}
    exit(0)
}

func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let group = DispatchGroup()
    for index in 0..<count {
        group.enter()
        Thread.detachNewThread {
            body(index)
            group.leave()
        }
    }
    group.wait()
}

/// A counter for each thread.
final class Counts: @unchecked Sendable {
    let values: UnsafeMutablePointer<Int>
    let count: Int

    init(_ count: Int) {
        values = .allocate(capacity: count)
        values.initialize(repeating: 0, count: count)
        self.count = count
    }

    var sum: Int { (0..<count).reduce(0) { $0 + values[$1] } }
}

signal(SIGPIPE, SIG_IGN)
var files = rlimit()
getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
files.rlim_cur = files.rlim_max
setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)

switch arguments.first {
case "server": server()
case "bulk":
    let (port, streams, seconds) = (number(1), number(2), Double(arguments[3])!)
    let counts = Counts(streams)
    let start = now()
    let end = start + UInt64(seconds * 1e9)
    onThreads(streams) { index in
        let buffer = allocateBlock()
        let descriptor = dial(port)
        _ = sendAll(descriptor, "S", 1)
        while now() < end {
            let count = recv(descriptor, buffer, blockBytes, 0)
            if count <= 0 { fatalError("the stream ended") }
            counts.values[index] += count
        }
        close(descriptor)
    }
    print(counts.sum, Double(now() - start) / 1e9)
case "ping":
    let (port, count) = (number(1), number(2))
    let descriptor = dial(port)
    _ = sendAll(descriptor, "E", 1)
    var byte: UInt8 = 1
    var times: [UInt64] = []
    for round in 0..<count + 1000 {
        let start = now()
        guard sendAll(descriptor, &byte, 1), recv(descriptor, &byte, 1, 0) == 1 else { fatalError("the echo ended") }
        if round >= 1000 { times.append(now() - start) }
    }
    times.sort()
    print(Double(times[count / 2]) / 1000, Double(times[count * 99 / 100]) / 1000)
case "connections":
    let (port, concurrency, seconds) = (number(1), number(2), Double(arguments[3])!)
    let counts = Counts(concurrency)
    let start = now()
    let end = start + UInt64(seconds * 1e9)
    onThreads(concurrency) { index in
        var byte: UInt8 = 0
        while now() < end {
            let descriptor = dial(port)
            guard sendAll(descriptor, "C", 1), recv(descriptor, &byte, 1, 0) == 1 else { fatalError("no response") }
            // The server closes first.
            _ = recv(descriptor, &byte, 1, 0)
            close(descriptor)
            counts.values[index] += 1
        }
    }
    print(Double(counts.sum) / (Double(now() - start) / 1e9))
case "copy":
    let upstream = number(1)
    let (listener, port) = makeListener()
    printLine("\(port)")
    while case let client = accept(listener, nil, nil), client >= 0 {
        setNoDelay(client)
        let server = dial(upstream)
        for (from, to) in [(client, server), (server, client)] {
            Thread.detachNewThread {
                let buffer = allocateBlock()
                while case let count = recv(from, buffer, blockBytes, 0), count > 0, sendAll(to, buffer, count) {}
                shutdown(to, Int32(SHUT_WR))
                buffer.deallocate()
            }
        }
    }
case "hold":
    let (port, count, megabytes) = (number(1), number(2), number(3))
    let buffer = allocateBlock()
    for _ in 0..<count {
        let descriptor = dial(port)
        if megabytes > 0 {
            _ = sendAll(descriptor, "M", 1)
            guard receiveAll(descriptor, buffer, blockBytes, 4 * blockBytes) else { fatalError("the download ended") }
        }
    }
    printLine("ready")
    while readLine() != nil {}
default:
    print("see the first lines of Benchmarks/Sources/Load/main.swift")
    exit(64)
}
