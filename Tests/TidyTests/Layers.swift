/// The targets with their layers and the modules they may import; see docs/architecture.md.
///
/// A target imports only targets above it in this table, so there are no cycles, and no targets of a higher layer.
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

    static let targets: [Target] = [
        .init(name: "Determinism", layer: 0, targets: [], packages: []),
        .init(name: "LinkModel", layer: 0, targets: ["Determinism"], packages: ["DequeModule", "HeapModule"]),
        .init(
            name: "TCPModel", layer: 0,
            targets: ["Determinism", "LinkModel"],
            packages: ["DequeModule", "HeapModule"]),
        .init(
            name: "HTTPWire", layer: 0,
            targets: ["Determinism"],
            packages: ["DequeModule", "HTTPTypes", "NIOCore"]),
        .init(name: "JSON", layer: 0, targets: [], packages: []),
        .init(name: "NotesContract", layer: 0, targets: ["JSON"], packages: []),
        .init(
            name: "SyncEngine", layer: 0,
            targets: ["Determinism", "HTTPWire", "JSON", "NotesContract"],
            packages: ["DequeModule", "HeapModule", "NIOCore"]),
        .init(
            name: "ClientApp", layer: 0,
            targets: ["Determinism", "HTTPWire", "JSON"],
            packages: ["DequeModule", "NIOCore"]),
        .init(name: "PatternEngine", layer: 0, targets: ["Determinism", "JSON", "ClientApp"], packages: []),
        .init(name: "ReaderEngine", layer: 0, targets: ["Determinism", "JSON", "ClientApp"], packages: []),
        .init(
            name: "FieldEngine", layer: 0, targets: ["Determinism", "JSON", "NotesContract", "ClientApp"], packages: []),
        .init(name: "ScenarioModel", layer: 0, targets: ["Determinism", "LinkModel"], packages: []),
        .init(
            name: "Impairment", layer: 0,
            targets: ["Determinism", "LinkModel", "TCPModel", "HTTPWire"],
            packages: ["DequeModule", "HeapModule", "NIOCore"]),
        .init(name: "LinkWorkload", layer: 1, targets: ["Determinism", "LinkModel", "TCPModel"], packages: []),
        .init(name: "CResources", layer: 1, targets: [], packages: []),
        .init(
            name: "ConfigFiles", layer: 1,
            targets: ["CResources", "Determinism", "LinkModel", "Impairment", "ScenarioModel"],
            packages: ["Yams"]),
        .init(
            name: "NotesService", layer: 1,
            targets: ["Determinism", "JSON", "NotesContract"],
            packages: ["GRDB", "GRDBSQLite", "HTTPTypes"]),
        .init(name: "ExpenseService", layer: 1, targets: ["Determinism", "JSON"], packages: ["HTTPTypes"]),
        .init(name: "ReaderService", layer: 1, targets: ["Determinism", "JSON"], packages: ["HTTPTypes"]),
        .init(
            name: "FieldService", layer: 1, targets: ["Determinism", "JSON", "NotesContract"],
            packages: ["HTTPTypes"]),
        .init(name: "CRelay", layer: 1, targets: [], packages: []),
        .init(name: "SystemSockets", layer: 1, targets: ["CRelay"], packages: ["NIOCore"]),
        .init(
            name: "SpliceRelay", layer: 1,
            targets: ["LinkModel", "CRelay", "SystemSockets"],
            packages: ["HeapModule", "NIOConcurrencyHelpers", "NIOCore"]),
        .init(
            name: "ProxyServer", layer: 1,
            targets: ["Determinism", "LinkModel", "TCPModel", "Impairment", "SystemSockets", "SpliceRelay"],
            packages: ["DequeModule", "HeapModule", "Logging", "NIOConcurrencyHelpers", "NIOCore", "NIOPosix"]),
        .init(name: "CPcap", layer: 1, targets: [], packages: []),
        .init(
            name: "PacketCapture", layer: 1,
            targets: ["Determinism", "LinkModel", "TCPModel", "HTTPWire", "CPcap"],
            packages: ["HeapModule", "NIOCore"]),
        .init(
            name: "HTTPServing", layer: 1,
            targets: ["Determinism", "HTTPWire"],
            packages: ["HTTPTypes", "NIOCore", "NIOPosix"]),
        .init(name: "ClientSockets", layer: 1, targets: ["HTTPWire"], packages: ["NIOCore", "NIOPosix"]),
        .init(name: "AppStore", layer: 1, targets: ["ClientApp"], packages: ["GRDB"]),
        .init(
            name: "NotesServer", layer: 2,
            targets: ["HTTPWire", "NotesService", "HTTPServing"],
            packages: ["HTTPTypes", "NIOPosix"]),
        .init(
            name: "SyncStore", layer: 2, targets: ["JSON", "NotesContract", "SyncEngine"],
            packages: ["GRDB", "GRDBSQLite"]),
        .init(
            name: "SyncClient", layer: 2,
            targets: ["Determinism", "HTTPWire", "JSON", "NotesContract", "SyncEngine", "ClientSockets", "SyncStore"],
            packages: ["Logging", "NIOCore", "NIOPosix"]),
        .init(
            name: "AppClient", layer: 2,
            targets: ["Determinism", "HTTPWire", "ClientApp", "ClientSockets", "AppStore"],
            packages: ["NIOCore", "NIOPosix"]),
        .init(
            name: "ControlAPI", layer: 2,
            targets: [
                "Determinism", "LinkModel", "ScenarioModel", "HTTPWire", "JSON", "Impairment", "ConfigFiles",
                "ProxyServer", "HTTPServing",
            ],
            packages: ["HTTPTypes", "Logging", "NIOCore", "NIOPosix"]),
        .init(
            name: "ScenarioWorld", layer: 2,
            targets: [
                "Determinism", "HTTPWire", "JSON", "NotesContract", "SyncEngine", "ClientApp", "PatternEngine",
                "ScenarioModel", "Impairment", "NotesService", "ExpenseService",
                "ReaderEngine", "ReaderService",
                "FieldEngine", "FieldService",
            ],
            packages: ["HTTPTypes"]),
        .init(
            name: "SimulatedWorld", layer: 2,
            targets: [
                "Determinism", "LinkModel", "TCPModel", "HTTPWire", "NotesContract", "SyncEngine", "ClientApp",
                "SyncStore", "ScenarioModel", "ScenarioWorld", "Impairment", "NotesService",
            ],
            packages: ["DequeModule", "HTTPTypes", "HeapModule", "NIOCore"]),
        .init(
            name: "LiveMeasurement", layer: 2,
            targets: ["Determinism", "LinkModel", "LinkWorkload", "ConfigFiles", "ProxyServer"],
            packages: ["NIOCore", "NIOPosix"]),
        .init(
            name: "CommandSupport", layer: 2,
            targets: [
                "Determinism", "LinkModel", "Impairment", "JSON", "ScenarioModel", "ConfigFiles", "NotesService",
                "ProxyServer", "PacketCapture", "NotesServer", "ControlAPI", "LinkWorkload", "LiveMeasurement",
            ],
            packages: ["Logging", "NIOCore", "NIOPosix"]),
        .init(
            name: "LiveWorld", layer: 3,
            targets: [
                "Determinism", "LinkModel", "HTTPWire", "JSON", "NotesContract", "SyncEngine", "ClientApp",
                "SyncStore", "ScenarioModel", "ScenarioWorld", "Impairment", "NotesService", "ProxyServer",
                "NotesServer",
                "ClientSockets", "SyncClient", "AppClient",
            ],
            packages: ["Logging", "NIOCore", "NIOPosix"]),
        .init(
            name: "ScenarioRunner", layer: 3,
            targets: [
                "Determinism", "LinkModel", "JSON", "SyncEngine", "PatternEngine", "ScenarioModel", "ConfigFiles",
                "NotesService",
                "ScenarioWorld", "SimulatedWorld", "CommandSupport", "LiveWorld", "PacketCapture",
                "ReaderEngine",
                "FieldEngine",
            ],
            packages: []),
        .init(
            name: "SlowlaneTesting", layer: 3,
            targets: [
                "Determinism", "LinkModel", "Impairment", "ScenarioModel", "ConfigFiles", "ProxyServer",
                "ScenarioWorld", "SimulatedWorld",
            ],
            packages: ["NIOPosix", "Testing"]),
        .init(name: "ToxiproxyCLI", layer: 3, targets: ["JSON", "ControlAPI", "CommandSupport"], packages: []),
        .init(
            name: "slowlane", layer: 4,
            targets: [
                "Determinism", "LinkModel", "TCPModel", "Impairment", "JSON", "SyncEngine", "ScenarioModel",
                "LinkWorkload", "ConfigFiles", "NotesService", "ProxyServer", "PacketCapture", "NotesServer",
                "SyncStore", "SyncClient", "ControlAPI", "ScenarioWorld",
                "LiveMeasurement", "CommandSupport", "ScenarioRunner", "ToxiproxyCLI",
            ],
            packages: ["ArgumentParser", "Logging", "NIOCore", "NIOPosix"]),
    ]
}
