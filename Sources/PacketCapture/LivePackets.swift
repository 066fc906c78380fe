internal import CPcap
internal import Synchronization

/// Packets of an interface, as libpcap gives them.
///
/// Used from one thread, but for ``stop()``.
public final class LivePackets: @unchecked Sendable {
    /// Why nothing can be captured.
    public enum Failure: Error, CustomStringConvertible {
        /// The system does not allow it.
        case notPermitted(interface: String)
        /// There is no such interface; those that are.
        case noInterface(String, known: [String])
        /// Something else that libpcap or the system says.
        case failed(String)

        public var description: String {
            switch self {
            case .notPermitted(let interface): "not allowed to capture on \(interface)"
            case .noInterface(let name, let known):
                "there is no interface '\(name)'"
                    + (known.isEmpty ? "" : "; there are \(known.joined(separator: ", "))")
            case .failed(let reason): reason
            }
        }
    }

    /// What got lost.
    public struct Counts: Hashable, Sendable {
        /// Packets that matched.
        public let received: Int
        /// Those for which the kernel's buffer had no room.
        public let dropped: Int
        /// Those that the interface dropped.
        public let droppedByInterface: Int
    }

    private let handle: OpaquePointer
    private var dump: OpaquePointer?
    /// What the second part of a time counts: nanoseconds where the system has them, otherwise microseconds.
    private let nanosecondsPerTick: Int64
    /// How frames begin (`LINKTYPE_`).
    public let linkType: Int
    private let isStopped = Mutex(false)

    /// Bytes of a packet that are kept: more than any has, since on a loopback they come unsegmented.
    private static let snapshotBytes: CInt = 262_144
    /// What the kernel keeps until we take it.
    private static let bufferBytes: CInt = 64 << 20
    /// How long a wait for packets may last, where the system has such a limit.
    private static let waitMilliseconds: CInt = 100

    /// Starts to capture.
    ///
    /// - Parameters:
    ///   - interface: Its name: `lo`.
    ///   - filter: Which packets, in libpcap's words: `tcp port 8000`.
    ///   - path: Where they are written too, as a pcap file with nanoseconds.
    public init(interface: String, filter: String, writingTo path: String? = nil) throws(Failure) {
        var message = [CChar](repeating: 0, count: Int(PCAP_ERRBUF_SIZE))
        guard let handle = pcap_create(interface, &message) else { throw .failed(Self.text(message)) }
        pcap_set_snaplen(handle, Self.snapshotBytes)
        pcap_set_promisc(handle, 0)
        pcap_set_timeout(handle, Self.waitMilliseconds)
        pcap_set_immediate_mode(handle, 1)
        pcap_set_buffer_size(handle, Self.bufferBytes)
        pcap_set_tstamp_precision(handle, PCAP_TSTAMP_PRECISION_NANO)
        let result = pcap_activate(handle)
        guard result >= 0 else {
            let reason = String(cString: pcap_geterr(handle))
            pcap_close(handle)
            switch result {
            case PCAP_ERROR_PERM_DENIED, PCAP_ERROR_PROMISC_PERM_DENIED: throw .notPermitted(interface: interface)
            case PCAP_ERROR_NO_SUCH_DEVICE: throw .noInterface(interface, known: Self.interfaces())
            default: throw .failed("\(interface): \(reason.isEmpty ? "error \(result)" : reason)")
            }
        }
        var program = bpf_program()
        guard pcap_compile(handle, &program, filter, 1, bpf_u_int32.max) == 0, pcap_setfilter(handle, &program) == 0
        else {
            let reason = String(cString: pcap_geterr(handle))
            pcap_close(handle)
            throw .failed("filter '\(filter)': \(reason)")
        }
        pcap_freecode(&program)
        linkType = Int(pcap_datalink(handle))
        nanosecondsPerTick = pcap_get_tstamp_precision(handle) == PCAP_TSTAMP_PRECISION_NANO ? 1 : 1000
        if let path {
            guard let dump = pcap_dump_open(handle, path) else {
                let reason = String(cString: pcap_geterr(handle))
                pcap_close(handle)
                throw .failed(reason)
            }
            self.dump = dump
        }
        self.handle = handle
    }

    deinit {
        if let dump { pcap_dump_close(dump) }
        pcap_close(handle)
    }

    /// Ends ``run(_:)``, which may be waiting for a packet.
    public func stop() {
        isStopped.withLock { $0 = true }
        pcap_breakloop(handle)
    }

    /// Takes packets until it is stopped: each with its frame, as far as it was captured, and its time in nanoseconds since
    /// 1970. Returns what got lost.
    public func run(_ body: (UnsafeRawBufferPointer, Int64) -> Void) throws(Failure) -> Counts {
        while !isStopped.withLock({ $0 }) {
            var header: UnsafeMutablePointer<pcap_pkthdr>?
            var bytes: UnsafePointer<UInt8>?
            let result = pcap_next_ex(handle, &header, &bytes)
            if result == PCAP_ERROR_BREAK { break }
            guard result >= 0 else { throw .failed(String(cString: pcap_geterr(handle))) }
            guard result == 1, let header, let bytes else {
                if let dump { pcap_dump_flush(dump) }
                continue
            }
            if let dump { pcap_dump(UnsafeMutablePointer<UInt8>(dump), header, bytes) }
            let time =
                Int64(header.pointee.ts.tv_sec) * 1_000_000_000
                + Int64(header.pointee.ts.tv_usec) * nanosecondsPerTick
            body(UnsafeRawBufferPointer(start: bytes, count: Int(header.pointee.caplen)), time)
        }
        if let dump, pcap_dump_flush(dump) != 0 {
            throw .failed("the file cannot be written to its end: is the disk full?")
        }
        var counts = pcap_stat()
        pcap_stats(handle, &counts)
        return Counts(
            received: Int(counts.ps_recv), dropped: Int(counts.ps_drop), droppedByInterface: Int(counts.ps_ifdrop))
    }

    private static func interfaces() -> [String] {
        var first: UnsafeMutablePointer<pcap_if_t>?
        var message = [CChar](repeating: 0, count: Int(PCAP_ERRBUF_SIZE))
        guard pcap_findalldevs(&first, &message) == 0 else { return [] }
        defer { pcap_freealldevs(first) }
        var names: [String] = []
        var next = first
        while let device = next {
            names.append(String(cString: device.pointee.name))
            next = device.pointee.next
        }
        return names
    }

    private static func text(_ message: [CChar]) -> String {
        String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
