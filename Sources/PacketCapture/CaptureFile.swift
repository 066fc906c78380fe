internal import Dispatch
internal import Foundation
internal import Synchronization

/// A file that packets are appended to from a loop that must not wait for a disk.
///
/// What has not been written yet is bounded; beyond it packets are left out and counted. After an error nothing more is
/// written, and the file is whole up to there.
public final class CaptureFile: Sendable {
    private struct State {
        var pending: [UInt8] = []
        var pendingPackets = 0
        var isWriting = false
        var dropped = 0
        var failure: String?
    }

    private let state = Mutex(State())
    private let file: FileHandle
    private let queue = DispatchQueue(label: "slowlane.capture")

    /// Bytes that may wait to be written.
    public static let pendingBytesMax = 64 << 20

    /// Why a file cannot be made.
    public struct CannotCreate: Error, CustomStringConvertible {
        let path: String
        let reason: String

        public var description: String { "\(path): cannot be written: \(reason)" }
    }

    /// Makes the file anew and writes its head.
    public init(_ path: String, head: [UInt8]) throws(CannotCreate) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw CannotCreate(path: path, reason: String(cString: strerror(errno)).lowercased())
        }
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        append(head)
    }

    /// Packets left out because the disk was too slow or refused, and why it refused.
    public var loss: (packets: Int, reason: String?) { state.withLock { ($0.dropped, $0.failure) } }

    /// Appends what belongs together.
    public func append(_ bytes: [UInt8]) {
        let begins = state.withLock { state in
            guard state.failure == nil, state.pending.count + bytes.count <= Self.pendingBytesMax else {
                state.dropped += 1
                return false
            }
            state.pending += bytes
            state.pendingPackets += 1
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins { queue.async { self.write() } }
    }

    /// Waits until everything is written.
    public func close() { queue.sync { write() } }

    private func write() {
        while true {
            let (bytes, packets) = state.withLock { state in
                defer { (state.pending, state.pendingPackets) = ([], 0) }
                if state.pending.isEmpty { state.isWriting = false }
                return (state.pending, state.pendingPackets)
            }
            if bytes.isEmpty { return }
            let length = try? file.offset()
            do {
                try file.write(contentsOf: Data(bytes))
            } catch {
                // Half a packet would make the file unreadable.
                if let length { try? file.truncate(atOffset: length) }
                state.withLock { state in
                    state.failure = Self.reason(error)
                    state.dropped += packets + state.pendingPackets
                    (state.pending, state.pendingPackets) = ([], 0)
                }
            }
        }
    }

    private static func reason(_ error: any Error) -> String {
        let code = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        return (code ?? error as NSError).localizedDescription.lowercased()
    }
}
