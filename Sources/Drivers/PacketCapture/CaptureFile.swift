internal import Dispatch
internal import Foundation
internal import Synchronization

/// A capture file that is written in the background, so that its caller never waits for the disk.
///
/// Packets that do not fit into the bounded buffer are dropped and counted. After an error nothing more is written, and
/// the packets before it remain readable.
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

    /// The maximum number of bytes that wait to be written.
    public static let pendingBytesMax = 64 << 20

    /// An error that prevents the file from being created.
    public struct CreationError: Error, CustomStringConvertible {
        let path: String
        let reason: String

        public var description: String { "cannot create \(path): \(reason)" }
    }

    /// Creates or truncates the file and writes its header.
    public init(_ path: String, header: [UInt8]) throws(CreationError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw CreationError(path: path, reason: String(cString: strerror(errno)).lowercased())
        }
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        append(header)
    }

    /// The number of dropped packets, and the write error; without an error, the disk was too slow.
    public var loss: (packets: Int, reason: String?) { state.withLock { ($0.dropped, $0.failure) } }

    /// Appends a packet.
    public func append(_ bytes: [UInt8]) {
        let startsWriting = state.withLock { state in
            guard state.failure == nil, state.pending.count + bytes.count <= Self.pendingBytesMax else {
                state.dropped += 1
                return false
            }
            state.pending += bytes
            state.pendingPackets += 1
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if startsWriting { queue.async { self.write() } }
    }

    /// Waits until all packets are written.
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
                // A partial packet would make the file invalid.
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
