import Foundation
import Glibc
import Synchronization

/// Datagrams through `slowlane proxy --udp`, with the kernel's time of each arrival.
struct LiveRun {
    let count: Int
    let arrivals: [Arrival]
    /// Datagrams whose payload is not what was sent.
    let damaged: Int

    struct LiveError: Error, CustomStringConvertible { let description: String }

    private static let receiveBytes: CInt = 64 << 20
    /// The time without an arrival after which the run is over.
    private static let quietTime = timeval(tv_sec: 2, tv_usec: 0)

    init(_ setting: Setting, program: String, count: Int, seed: UInt64) throws {
        self.count = count
        let server = try Self.socket(toPort: nil)
        defer { close(server.socket) }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("slowlane-figures-\(getpid()).yaml")
        try "profile: 1\nname: Figures\nup: { \(setting.profile) }\ndown: {}\n".write(
            to: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: file) }
        let proxy = Process()
        proxy.executableURL = URL(fileURLWithPath: program)
        proxy.arguments = [
            "proxy", "--udp", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:\(server.port)", "--profile",
            file.path,
            "--seed", "\(seed)",
        ]
        let (commands, output) = (Pipe(), Pipe())
        (proxy.standardInput, proxy.standardOutput) = (commands, output)
        proxy.standardError = FileHandle.nullDevice
        try proxy.run()
        defer {
            proxy.terminate()
            proxy.waitUntilExit()
        }
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        let words = line.split(separator: " ")
        guard words.count > 2, let port = words[2].split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw LiveError(description: "the proxy did not start: \(line)")
        }
        let client = try Self.socket(toPort: port)
        defer { close(client.socket) }

        let receiver = Receiver(server.socket, capacity: count + count / 8, quiet: Self.quietTime)
        let thread = Thread { receiver.run() }
        thread.stackSize = 1 << 20
        thread.start()
        let sent = Self.send(count, every: setting.interval.count, on: client.socket)
        receiver.allAreSent.store(true, ordering: .releasing)
        receiver.ended.wait()

        arrivals = receiver.found.map { number, time in Arrival(number: number, delay: time - sent[number], time: time)
        }
        damaged = receiver.damaged
        commands.fileHandleForWriting.write(Data("status\n".utf8))
        let status = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        // The kernel's losses would be taken for those of the link.
        let others = status.split(separator: ",").filter { $0.contains("discarded") }
        if receiver.overflows > 0 || !others.isEmpty {
            throw LiveError(
                description:
                    "this machine was too slow: \(receiver.overflows) overflows of the receiver;\(others.joined(separator: ","))"
            )
        }
    }

    /// Sends datagrams at an interval; returns their times.
    private static func send(_ count: Int, every interval: Int64, on socket: CInt) -> [Int64] {
        // Pauses of this thread end on time.
        if let file = fopen("/proc/self/timerslack_ns", "w") {
            fputs("1", file)
            fclose(file)
        }
        var times = [Int64](repeating: 0, count: count)
        var payload = [UInt8](repeating: 0, count: Setting.payloadBytes)
        let start = now()
        for number in 0..<count {
            let ahead = start + Int64(number) * interval - now()
            // Shorter pauses would take longer than they say.
            if ahead > 60_000 {
                var pause = timespec(tv_sec: 0, tv_nsec: Int(min(ahead, 100_000_000)))
                nanosleep(&pause, nil)
            }
            fill(&payload, number)
            times[number] = now()
            while Glibc.send(socket, payload, payload.count, 0) < 0,
                errno == ENOBUFS || errno == EINTR || errno == EAGAIN
            {}
        }
        return times
    }

    /// The number, and bytes that depend on it.
    static func fill(_ payload: inout [UInt8], _ number: Int) {
        for index in 0..<8 { payload[index] = UInt8(truncatingIfNeeded: number >> (8 * index)) }
        let pattern = UInt8(truncatingIfNeeded: number &* 31 &+ 7)
        for index in 8..<payload.count { payload[index] = pattern &+ UInt8(truncatingIfNeeded: index) }
    }

    private static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    private static func socket(toPort port: UInt16?) throws -> (socket: CInt, port: UInt16) {
        let file = Glibc.socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
        var bytes = receiveBytes
        // SO_RCVBUFFORCE needs a privilege.
        if setsockopt(file, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, 4) != 0 {
            setsockopt(file, SOL_SOCKET, SO_RCVBUF, &bytes, 4)
        }
        var yes: CInt = 1
        setsockopt(file, SOL_SOCKET, SO_TIMESTAMPNS, &yes, 4)
        setsockopt(file, SOL_SOCKET, SO_RXQ_OVFL, &yes, 4)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        address.sin_port = (port ?? 0).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                let code = port == nil ? bind(file, $0, length) : connect(file, $0, length)
                return code == 0 ? getsockname(file, $0, &length) : code
            }
        }
        guard file >= 0, code == 0 else { throw LiveError(description: "no socket: errno \(errno)") }
        return (file, UInt16(bigEndian: address.sin_port))
    }
}

/// The server: stores the number and the time of each datagram.
private final class Receiver: @unchecked Sendable {
    let socket: CInt
    let ended = DispatchSemaphore(value: 0)
    let allAreSent = Atomic(false)
    private(set) var found: [(number: Int, time: Int64)] = []
    private(set) var damaged = 0
    private(set) var overflows: UInt32 = 0

    init(_ socket: CInt, capacity: Int, quiet: timeval) {
        self.socket = socket
        found.reserveCapacity(capacity)
        var quiet = quiet
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &quiet, socklen_t(MemoryLayout<timeval>.size))
    }

    func run() {
        var payload = [UInt8](repeating: 0, count: 2048)
        var expected = [UInt8](repeating: 0, count: Setting.payloadBytes)
        let control = UnsafeMutableRawPointer.allocate(byteCount: 128, alignment: 16)
        defer { control.deallocate() }
        while true {
            let (count, time) = payload.withUnsafeMutableBytes { bytes -> (Int, Int64) in
                var piece = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                return withUnsafeMutablePointer(to: &piece) { piece in
                    var message = msghdr()
                    message.msg_iov = piece
                    message.msg_iovlen = 1
                    message.msg_control = control
                    message.msg_controllen = 128
                    let count = recvmsg(socket, &message, 0)
                    return (count, count < 0 ? 0 : readControl(control, Int(message.msg_controllen)))
                }
            }
            if count < 0 {
                if errno == EINTR { continue }
                if allAreSent.load(ordering: .acquiring) { break }
                continue
            }
            let number = (0..<8).reduce(0) { $0 | Int(payload[$1]) << (8 * $1) }
            LiveRun.fill(&expected, number)
            if count != Setting.payloadBytes || !payload.starts(with: expected) {
                damaged += 1
            } else {
                found.append((number, time))
            }
        }
        ended.signal()
    }

    /// Returns the time of a message, and stores the count of overflows.
    private func readControl(_ control: UnsafeMutableRawPointer, _ length: Int) -> Int64 {
        var (offset, time) = (0, Int64(0))
        let header = MemoryLayout<cmsghdr>.size
        while offset + header <= length {
            let part = control.load(fromByteOffset: offset, as: cmsghdr.self)
            let data = control + offset + header
            if part.cmsg_level == SOL_SOCKET, part.cmsg_type == SO_TIMESTAMPNS {
                let value = data.load(as: timespec.self)
                time = Int64(value.tv_sec) * 1_000_000_000 + Int64(value.tv_nsec)
            } else if part.cmsg_level == SOL_SOCKET, part.cmsg_type == SO_RXQ_OVFL {
                overflows = data.load(as: UInt32.self)
            }
            offset += (max(header, Int(part.cmsg_len)) + 7) & ~7
        }
        return time
    }
}
