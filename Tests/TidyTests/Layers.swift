/// The targets with their layers and the modules they may import; see docs/architecture.md.
///
/// A target imports targets above it in this table only, so there are no cycles, and never a higher layer.
enum Layers {
    /// A target of `Sources`.
    struct Target: Sendable {
        let name: String
        let layer: Int
        /// Targets of this package.
        let targets: [String]
        /// Modules of other packages.
        let packages: [String]
    }

    /// Modules of the platform; the targets of layer 0 use none of them.
    static let platform: Set<String> = ["Foundation", "Synchronization", "Dispatch", "Darwin", "Glibc", "Musl"]

    private static let nio = ["NIOCore", "NIOPosix"]

    static let targets: [Target] = [
        .init(name: "LinkModel", layer: 0, targets: [], packages: ["DequeModule", "HeapModule"]),
        .init(name: "HTTPWire", layer: 0, targets: ["LinkModel"], packages: ["NIOCore"]),
        .init(name: "JSON", layer: 0, targets: [], packages: []),
        .init(name: "NotesContract", layer: 0, targets: ["JSON"], packages: []),
        .init(name: "SyncEngine", layer: 0, targets: ["LinkModel", "NotesContract"], packages: []),
        .init(name: "ScenarioModel", layer: 0, targets: ["LinkModel"], packages: []),
        .init(
            name: "Impairment", layer: 0, targets: ["LinkModel", "HTTPWire"],
            packages: ["DequeModule", "HeapModule", "NIOCore"]),
        .init(name: "LinkWorkload", layer: 1, targets: ["LinkModel"], packages: []),
        .init(name: "ConfigFiles", layer: 1, targets: ["LinkModel", "ScenarioModel"], packages: ["Yams"]),
        .init(
            name: "NotesService", layer: 1, targets: ["JSON", "NotesContract"],
            packages: ["GRDB", "GRDBSQLite", "HTTPTypes"]),
        .init(name: "CRelay", layer: 1, targets: [], packages: []),
        .init(
            name: "ProxyServer", layer: 1, targets: ["LinkModel", "Impairment", "CRelay"],
            packages: nio + ["DequeModule", "HeapModule", "Logging", "NIOConcurrencyHelpers"]),
        .init(name: "CPcap", layer: 1, targets: [], packages: []),
        .init(
            name: "PacketCapture", layer: 1, targets: ["LinkModel", "HTTPWire", "ProxyServer", "CPcap"],
            packages: ["HeapModule", "NIOCore"]),
        .init(name: "HTTPServing", layer: 1, targets: ["HTTPWire"], packages: nio + ["HTTPTypes"]),
        .init(
            name: "NotesServer", layer: 2, targets: ["HTTPServing", "NotesService"],
            packages: ["HTTPTypes", "NIOPosix"]
        ),
        .init(
            name: "SyncStore", layer: 2, targets: ["SyncEngine", "NotesContract", "LinkModel"], packages: ["GRDB"]),
        .init(
            name: "SyncClient", layer: 2,
            targets: ["SyncStore", "SyncEngine", "NotesContract", "HTTPWire", "LinkModel"], packages: nio + ["Logging"]),
        .init(
            name: "ControlAPI", layer: 2,
            targets: ["HTTPServing", "HTTPWire", "ProxyServer", "Impairment", "LinkModel", "ConfigFiles", "JSON"],
            packages: nio + ["HTTPTypes", "Logging"]),
        .init(
            name: "LiveMeasurement", layer: 2, targets: ["LinkModel", "LinkWorkload", "ConfigFiles", "ProxyServer"],
            packages: nio),
        .init(
            name: "CommandSupport", layer: 2,
            targets: ["LinkModel", "ScenarioModel", "ConfigFiles", "ProxyServer", "JSON"],
            packages: nio + ["Logging"]),
        .init(
            name: "ScenarioRunner", layer: 3,
            targets: [
                "LinkModel", "HTTPWire", "Impairment", "ProxyServer", "ScenarioModel", "NotesContract", "NotesService",
                "NotesServer", "SyncEngine", "SyncClient",
            ], packages: nio + ["Logging"]),
        .init(
            name: "slowlane", layer: 4,
            targets: [
                "LinkModel", "JSON", "SyncEngine", "ScenarioModel", "LinkWorkload", "ConfigFiles", "NotesService",
                "ProxyServer", "PacketCapture", "NotesServer", "SyncStore", "SyncClient", "ControlAPI",
                "LiveMeasurement", "CommandSupport", "ScenarioRunner",
            ], packages: nio + ["ArgumentParser", "HeapModule", "Logging"]),
    ]
}
