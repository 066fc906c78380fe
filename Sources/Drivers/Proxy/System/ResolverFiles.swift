internal import CRelay
internal import ForwardProxy
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The files of the system's resolver: resolv.conf(5) and hosts(5).
///
/// They are read again when they have changed, at most once per second. Other systems than Linux do not use these files
/// alone; there, only the system's resolver looks names up.
final class ResolverFiles {
    /// The longest file that is read. If one is longer, the system's resolver looks names up.
    private static let bytesMax = 1 << 20

    private let paths: (configuration: String, hosts: String)
    private let checkInterval: TimeAmount
    private let fixed: ResolverConfiguration?
    /// Size, time and number of the files that were read; empty for a missing one.
    private var versions: [String: [Int64]] = [:]
    private var nextCheck = NIODeadline.uptimeNanoseconds(0)
    private var current = ResolverConfiguration()
    private var hosts = HostsFile([])
    private var hostsFileIsTooLong = false

    /// - Parameters:
    ///   - fixed: A configuration in place of the system's.
    ///   - checkInterval: The least time between two checks for changes.
    init(
        _ fixed: ResolverConfiguration? = nil, configuration: String = "/etc/resolv.conf",
        hosts: String = "/etc/hosts", checkInterval: TimeAmount = .seconds(1)
    ) {
        self.checkInterval = checkInterval
        self.fixed = fixed
        paths = (configuration, hosts)
    }

    /// The name servers, without any if names must be looked up by the system's resolver.
    var configuration: ResolverConfiguration {
        refresh()
        return fixed ?? (hostsFileIsTooLong ? ResolverConfiguration() : current)
    }

    /// Returns the addresses of a name of the hosts file.
    func addresses(of host: String) -> [IPAddress] {
        refresh()
        return hosts.addresses(of: host)
    }

    private func refresh() {
        #if os(Linux)
        let now = NIODeadline.now()
        guard now >= nextCheck else { return }
        nextCheck = now + checkInterval
        if hasChanged(paths.configuration) {
            current = Self.read(paths.configuration).map { ResolverConfiguration($0) } ?? ResolverConfiguration()
        }
        if hasChanged(paths.hosts) {
            let text = Self.read(paths.hosts)
            hostsFileIsTooLong = text == nil && versions[paths.hosts] != []
            hosts = HostsFile(text ?? [])
        }
        #endif
    }

    #if os(Linux)
    private func hasChanged(_ path: String) -> Bool {
        var file = crelay_file()
        let fields =
            crelay_stat(path, &file) == 0
            ? [file.size, file.seconds, file.nanoseconds, Int64(truncatingIfNeeded: file.inode)] : []
        defer { versions[path] = fields }
        return versions[path] != fields
    }

    /// Returns the bytes of a file; `nil` if it cannot be read or is too long.
    private static func read(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: bytesMax + 1)
        let count = fread(&bytes, 1, bytes.count, file)
        return count > bytesMax ? nil : Array(bytes.prefix(count))
    }
    #endif
}
