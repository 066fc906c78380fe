internal import Foundation

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Processes that a program has started and that have left its process group (`setsid`). A variable of their environment
/// identifies them.
enum StrayProcesses {
    /// The maximum number of searches; a process that starts others faster than they are killed stays.
    private static let searchesMax = 20

    /// Kills all processes of this user that have a variable with this value when they start. Linux only.
    static func kill(variable: String, value: String) {
        #if os(Linux)
        let text = Array("\(variable)=\(value)".utf8)
        for _ in 0..<searchesMax {
            let found = processes(having: text)
            if found.isEmpty { return }
            for process in found { signal(process) }
        }
        #endif
    }

    private static func signal(_ process: pid_t) { _ = systemKill(process, SIGKILL) }

    private static func processes(having variable: [UInt8]) -> [pid_t] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.filter { process in
            guard process != getpid(), let bytes = contents("/proc/\(process)/environ") else { return false }
            return bytes.split(separator: 0).contains { $0.elementsEqual(variable) }
        }
    }

    /// Returns the contents of a file whose size is not known before.
    private static func contents(_ path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var found: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 4096)
        while found.count < 1 << 20 {
            let count = read(file, &bytes, bytes.count)
            guard count > 0 else { break }
            found += bytes.prefix(count)
        }
        return found
    }
}

private func systemKill(_ process: pid_t, _ signal: CInt) -> CInt { kill(process, signal) }
