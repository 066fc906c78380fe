internal import ArgumentParser
internal import CommandSupport

/// The maximum number of connections of a command, within the limit of open files.
enum ConnectionLimit {
    /// A smaller number than the default one is reported below this number.
    private static let fewConnections = 100

    /// Returns a wanted number, or what the limit of open files allows, with a note. Prints an error and throws an exit
    /// status if it allows no connection.
    static func connectionsMax(_ wanted: Int?, default: Int, _ console: Console) throws -> Int {
        let (count, files, filesMin) = Terminal.connectionsMax(wanted ?? `default`)
        guard count > 0 else {
            console.error(
                "the limit of open files (ulimit -n) is \(files), and a proxy needs at least \(filesMin); "
                    + "raise it with 'ulimit -n 1024'")
            throw ExitStatus.unavailable
        }
        if count < wanted ?? min(`default`, fewConnections) {
            console.print(
                "note: the limit of open files (ulimit -n) is \(files), so --max-connections is \(count)", to: .progress
            )
        }
        return count
    }
}
