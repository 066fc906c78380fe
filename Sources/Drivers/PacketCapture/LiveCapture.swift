internal import CPcap
internal import Synchronization

/// A live capture of a network interface with libpcap.
///
/// Used from one thread, except ``stop()``.
public final class LiveCapture: @unchecked Sendable {
    /// An error of libpcap.
    public enum CaptureError: Error, CustomStringConvertible {
        /// The process lacks the privileges to capture.
        case notPermitted(interface: String)
        /// The interface does not exist; `known` lists those that do.
        case noInterface(String, known: [String])
        /// Any other error, in libpcap's words.
        case failed(String)

        public var description: String {
            switch self {
            case .notPermitted(let interface): "not permitted to capture on \(interface)"
            case .noInterface(let name, let known):
                "no interface is named '\(name)'"
                    + (known.isEmpty ? "" : "; the interfaces are \(known.joined(separator: ", "))")
            case .failed(let reason): reason
            }
        }
    }

    /// The packet counters of a capture.
    public struct Counts: Hashable, Sendable {
        /// Packets that matched the filter.
        public let received: Int
        /// Packets dropped because the kernel's buffer was full.
        public let dropped: Int
        /// Packets dropped by the interface.
        public let droppedByInterface: Int
    }

    private let handle: OpaquePointer
    private var dump: OpaquePointer?
    /// The unit of the fractional part of packet times: 1 for nanoseconds, 1000 for microseconds.
    private let nanosecondsPerTick: Int64
    /// The link-layer header type (`LINKTYPE_`).
    public let linkType: Int
    private let isStopped = Mutex(false)

    /// The snapshot length: longer than any packet; on a loopback, packets are not segmented to the MTU.
    private static let snapshotBytes: CInt = 262_144
    /// The size of the kernel's buffer.
    private static let bufferBytes: CInt = 64 << 20
    /// The read timeout, on systems that have one.
    private static let waitMilliseconds: CInt = 100

    /// Starts a capture.
    ///
    /// - Parameters:
    ///   - interface: The interface's name, such as `lo`.
    ///   - filter: A libpcap filter expression, such as `tcp port 8000`.
    ///   - path: A pcap file to which packets are also written, with times in nanoseconds.
    public init(interface: String, filter: String, writingTo path: String? = nil) throws(CaptureError) {
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
        let isCompiled = pcap_compile(handle, &program, filter, 1, bpf_u_int32.max) == 0
        let isSet = isCompiled && pcap_setfilter(handle, &program) == 0
        if isCompiled { pcap_freecode(&program) }
        guard isSet else {
            let reason = String(cString: pcap_geterr(handle))
            pcap_close(handle)
            throw .failed("filter '\(filter)': \(reason)")
        }
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

    /// Makes ``run(_:)`` return.
    public func stop() {
        isStopped.withLock { $0 = true }
        pcap_breakloop(handle)
    }

    /// Reads packets until ``stop()`` is called, and passes each to `body`: the captured part of the frame, and the
    /// time in nanoseconds since 1970. Returns the packet counters.
    public func run(_ body: (UnsafeRawBufferPointer, Int64) -> Void) throws(CaptureError) -> Counts {
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
            throw .failed("cannot write the end of the file; the disk may be full")
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
