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
        /// libpcap cannot be loaded; `reason` is the text of the system's loader.
        case noLibrary(reason: String)
        /// Any other error, in libpcap's words.
        case failed(String)

        public var description: String {
            switch self {
            case .notPermitted(let interface): "not permitted to capture on \(interface)"
            case .noInterface(let name, let known):
                "no interface is named '\(name)'"
                    + (known.isEmpty ? "" : "; the interfaces are \(known.joined(separator: ", "))")
            case .noLibrary(let reason):
                "cannot load libpcap: \(reason); \(LiveCapture.installation)"
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

    /// How to install libpcap.
    public static var installation: String {
        #if os(Linux)
        "install it: 'apt-get install libpcap0.8' (Debian, Ubuntu) or 'dnf install libpcap' (Fedora)"
        #else
        "macOS contains it; please report this"
        #endif
    }

    /// Returns the version of the installed libpcap in its own words. Throws if it cannot be loaded.
    public static func libraryVersion() throws(CaptureError) -> String {
        text(try library().lib_version())
    }

    /// Returns the functions of libpcap; loads it if necessary.
    private static func library() throws(CaptureError) -> cpcap_functions {
        var functions = cpcap_functions()
        var message = [CChar](repeating: 0, count: Int(CPCAP_ERROR_BYTES))
        guard cpcap_load(&functions, &message, message.count) == 0 else { throw .noLibrary(reason: text(message)) }
        return functions
    }

    private let pcap: cpcap_functions
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
        let pcap = try Self.library()
        var message = [CChar](repeating: 0, count: Int(CPCAP_ERROR_BYTES))
        guard let handle = pcap.create(interface, &message) else { throw .failed(Self.text(message)) }
        _ = pcap.set_snaplen(handle, Self.snapshotBytes)
        _ = pcap.set_promisc(handle, 0)
        _ = pcap.set_timeout(handle, Self.waitMilliseconds)
        _ = pcap.set_immediate_mode(handle, 1)
        _ = pcap.set_buffer_size(handle, Self.bufferBytes)
        _ = pcap.set_tstamp_precision(handle, CPCAP_PRECISION_NANO)
        let result = pcap.activate(handle)
        guard result >= 0 else {
            let reason = Self.text(pcap.geterr(handle))
            pcap.close(handle)
            switch result {
            case CPCAP_ERROR_PERM_DENIED, CPCAP_ERROR_PROMISC_PERM_DENIED: throw .notPermitted(interface: interface)
            case CPCAP_ERROR_NO_SUCH_DEVICE: throw .noInterface(interface, known: Self.interfaces(pcap))
            default: throw .failed("\(interface): \(reason.isEmpty ? "error \(result)" : reason)")
            }
        }
        var program = cpcap_program()
        let isCompiled = pcap.compile(handle, &program, filter, 1, CPCAP_NETMASK_UNKNOWN) == 0
        let isSet = isCompiled && pcap.setfilter(handle, &program) == 0
        if isCompiled { pcap.freecode(&program) }
        guard isSet else {
            let reason = Self.text(pcap.geterr(handle))
            pcap.close(handle)
            throw .failed("filter '\(filter)': \(reason)")
        }
        linkType = Int(pcap.datalink(handle))
        nanosecondsPerTick = pcap.get_tstamp_precision(handle) == CPCAP_PRECISION_NANO ? 1 : 1000
        if let path {
            guard let dump = pcap.dump_open(handle, path) else {
                let reason = Self.text(pcap.geterr(handle))
                pcap.close(handle)
                throw .failed(reason)
            }
            self.dump = dump
        }
        self.pcap = pcap
        self.handle = handle
    }

    deinit {
        if let dump { pcap.dump_close(dump) }
        pcap.close(handle)
    }

    /// Makes ``run(_:)`` return.
    public func stop() {
        isStopped.withLock { $0 = true }
        pcap.breakloop(handle)
    }

    /// Reads packets until ``stop()`` is called, and passes each to `body`: the captured part of the frame, and the
    /// time in nanoseconds since 1970. Returns the packet counters.
    public func run(_ body: (UnsafeRawBufferPointer, Int64) -> Void) throws(CaptureError) -> Counts {
        while !isStopped.withLock({ $0 }) {
            var header: UnsafeMutablePointer<cpcap_header>?
            var bytes: UnsafePointer<UInt8>?
            let result = pcap.next_ex(handle, &header, &bytes)
            if result == CPCAP_ERROR_BREAK { break }
            guard result >= 0 else { throw .failed(Self.text(pcap.geterr(handle))) }
            guard result == 1, let header, let bytes else {
                if let dump { _ = pcap.dump_flush(dump) }
                continue
            }
            if let dump { pcap.dump(UnsafeMutablePointer<UInt8>(dump), header, bytes) }
            let time =
                Int64(header.pointee.time.tv_sec) * 1_000_000_000
                + Int64(header.pointee.time.tv_usec) * nanosecondsPerTick
            body(UnsafeRawBufferPointer(start: bytes, count: Int(header.pointee.captured_bytes)), time)
        }
        if let dump, pcap.dump_flush(dump) != 0 {
            throw .failed("cannot write the end of the file; the disk may be full")
        }
        var counts = cpcap_counts()
        _ = pcap.stats(handle, &counts)
        return Counts(
            received: Int(counts.received), dropped: Int(counts.dropped),
            droppedByInterface: Int(counts.dropped_by_interface))
    }

    private static func interfaces(_ pcap: cpcap_functions) -> [String] {
        var first: UnsafeMutablePointer<cpcap_interface>?
        var message = [CChar](repeating: 0, count: Int(CPCAP_ERROR_BYTES))
        guard pcap.findalldevs(&first, &message) == 0 else { return [] }
        defer { pcap.freealldevs(first) }
        var names: [String] = []
        var next = first
        while let device = next {
            names.append(String(cString: device.pointee.name))
            next = device.pointee.next
        }
        return names
    }

    /// Returns a text of libpcap; empty for a null pointer.
    private static func text(_ text: UnsafePointer<CChar>?) -> String { text.map { String(cString: $0) } ?? "" }

    private static func text(_ message: [CChar]) -> String {
        String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
