internal import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if os(Linux)
/// The metrics of this process from `/proc`, with the names of Prometheus' client libraries.
enum ProcessMetrics {
    static var gauges: [(name: String, help: String, value: Int)] {
        var gauges: [(String, String, Int)] = []
        if let memory = fields(of: "/proc/self/statm"), memory.count > 1 {
            let page = Int(sysconf(CInt(_SC_PAGESIZE)))
            gauges.append(("process_virtual_memory_bytes", "Virtual memory.", (Int(memory[0]) ?? 0) * page))
            gauges.append(("process_resident_memory_bytes", "Resident memory.", (Int(memory[1]) ?? 0) * page))
        }
        if let files = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
            gauges.append(("process_open_fds", "Open file descriptors.", files))
        }
        var limit = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        if getrlimit(resource, &limit) == 0 {
            gauges.append(("process_max_fds", "Limit of open file descriptors.", Int(clamping: limit.rlim_cur)))
        }
        if let start { gauges.append(("process_start_time_seconds", "Start time in seconds since 1970.", start)) }
        return gauges
    }

    /// The start of the process in seconds since 1970.
    private static let start: Int? = {
        // Field 22 is the start in ticks since boot; field 2, in parentheses, may contain spaces.
        guard let status = fields(of: "/proc/self/stat"), let end = status.lastIndex(where: { $0.hasSuffix(")") }),
            status.count > end + 20, let ticks = Int(status[end + 20]),
            let boot = fields(of: "/proc/stat").flatMap({ fields in
                fields.firstIndex(of: "btime").flatMap { Int(fields[$0 + 1]) }
            })
        else { return nil }
        return boot + ticks / Int(sysconf(CInt(_SC_CLK_TCK)))
    }()

    private static func fields(of path: String) -> [Substring]? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        return String(decoding: data, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    }
}
#endif
