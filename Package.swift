// swift-tools-version: 6.2
import PackageDescription

/// The settings of every target: warnings are errors, and each import states whether it is part of the API.
let settings: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
]

let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioLocks = Target.Dependency.product(name: "NIOConcurrencyHelpers", package: "swift-nio")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let sqlite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

let package = Package(
    name: "slowlane",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "slowlane", targets: ["slowlane"]),
        .library(name: "Determinism", targets: ["Determinism"]),
        .library(name: "LinkModel", targets: ["LinkModel"]),
        .library(name: "TCPModel", targets: ["TCPModel"]),
        .library(name: "Impairment", targets: ["Impairment"]),
        .library(name: "ProxyServer", targets: ["ProxyServer"]),
        .library(name: "SyncClient", targets: ["SyncEngine", "SyncClient"]),
        .library(name: "SimulatedWorld", targets: ["ConfigFiles", "ScenarioModel", "ScenarioWorld", "SimulatedWorld"]),
        .library(name: "SlowlaneTesting", targets: ["SlowlaneTesting"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        // Layer 0: decisions. No sockets, clocks, threads or randomness of its own.
        .target(name: "Determinism", swiftSettings: settings),
        .target(
            name: "LinkModel",
            dependencies: [
                "Determinism",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "TCPModel",
            dependencies: [
                "Determinism", "LinkModel",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "HTTPWire",
            dependencies: [
                "Determinism", httpTypes, nioCore, .product(name: "DequeModule", package: "swift-collections"),
            ], swiftSettings: settings),
        .target(name: "JSON", swiftSettings: settings),
        .target(
            name: "NotesContract",
            dependencies: [
                "JSON"
            ], swiftSettings: settings),
        .target(
            name: "SyncEngine",
            dependencies: [
                "Determinism", "HTTPWire", "JSON", "NotesContract", nioCore,
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ], swiftSettings: settings),
        .target(
            name: "ClientApp",
            dependencies: [
                "Determinism", "HTTPWire", "JSON", nioCore,
                .product(name: "DequeModule", package: "swift-collections"),
            ], swiftSettings: settings),
        .target(
            name: "PatternEngine",
            dependencies: [
                "Determinism", "JSON", "ClientApp",
            ], swiftSettings: settings),
        .target(name: "ReaderEngine", dependencies: ["Determinism", "JSON", "ClientApp"], swiftSettings: settings),
        .target(
            name: "FieldEngine", dependencies: ["Determinism", "JSON", "NotesContract", "ClientApp"],
            swiftSettings: settings),
        .target(
            name: "ScenarioModel",
            dependencies: [
                "Determinism", "LinkModel",
            ], swiftSettings: settings),
        .target(
            name: "Impairment",
            dependencies: [
                "Determinism", "LinkModel", "TCPModel", "HTTPWire", nioCore,
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        // Layer 1: drivers, files and system calls.
        .target(
            name: "LinkWorkload",
            dependencies: [
                "Determinism", "LinkModel", "TCPModel",
            ], swiftSettings: settings),
        .target(
            name: "ConfigFiles",
            dependencies: [
                "Yams", "CResources", "Determinism", "LinkModel", "Impairment", "ScenarioModel",
            ],
            swiftSettings: settings
        ),
        .target(
            name: "NotesService",
            dependencies: [
                "Determinism", "JSON", "NotesContract", grdb, sqlite, httpTypes,
            ],
            swiftSettings: settings),
        .target(
            name: "ExpenseService",
            dependencies: [
                "Determinism", "JSON", httpTypes,
            ], swiftSettings: settings),
        .target(name: "ReaderService", dependencies: ["Determinism", "JSON", httpTypes], swiftSettings: settings),
        .target(
            name: "FieldService", dependencies: ["Determinism", "JSON", "NotesContract", httpTypes],
            swiftSettings: settings),
        .target(
            name: "SyncStore",
            dependencies: [
                "JSON", "NotesContract", "SyncEngine", grdb, sqlite,
            ],
            swiftSettings: settings),
        .target(name: "CResources", exclude: ["dashboard"]),
        .target(name: "CRelay"),
        .target(name: "SystemSockets", dependencies: ["CRelay", nioCore], swiftSettings: settings),
        .target(
            name: "SpliceRelay",
            dependencies: [
                "LinkModel", "SystemSockets", "CRelay", nioCore, nioLocks,
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "ProxyServer",
            dependencies: [
                "Determinism", "LinkModel", "TCPModel", "Impairment", "SpliceRelay", "SystemSockets", nioCore,
                nioPosix, nioLocks, logging,
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        .systemLibrary(name: "CPcap", pkgConfig: "libpcap", providers: [.apt(["libpcap-dev"]), .brew(["libpcap"])]),
        .target(
            name: "PacketCapture",
            dependencies: [
                "Determinism", "LinkModel", "TCPModel", "HTTPWire", "CPcap", nioCore,
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings),
        .target(name: "ClientSockets", dependencies: ["HTTPWire", nioCore, nioPosix], swiftSettings: settings),
        .target(
            name: "AppStore",
            dependencies: [
                "ClientApp", grdb,
            ], swiftSettings: settings),
        .target(
            name: "HTTPServing",
            dependencies: [
                "Determinism", "HTTPWire", httpTypes, nioCore, nioPosix,
            ], swiftSettings: settings),
        // Layer 2: servers and clients.
        .target(
            name: "NotesServer",
            dependencies: [
                "HTTPWire", "HTTPServing", "NotesService", httpTypes, nioPosix,
            ],
            swiftSettings: settings),
        .target(
            name: "SyncClient",
            dependencies: [
                "Determinism", "LinkModel", "HTTPWire", "JSON", "NotesContract", "ClientSockets", "SyncEngine",
                "SyncStore",
                nioCore, nioPosix, logging,
            ],
            swiftSettings: settings
        ),
        .target(
            name: "AppClient",
            dependencies: [
                "Determinism", "HTTPWire", "ClientSockets", "ClientApp", "AppStore", nioCore, nioPosix,
            ], swiftSettings: settings),
        .target(
            name: "ControlAPI",
            dependencies: [
                "Determinism", "LinkModel", "ScenarioModel", "HTTPWire", "Impairment", "JSON", "HTTPServing",
                "ProxyServer", "ConfigFiles", httpTypes, nioCore, nioPosix, logging,
            ],
            exclude: ["openapi.json"],
            swiftSettings: settings
        ),
        .target(
            name: "LiveMeasurement",
            dependencies: [
                "Determinism", "LinkModel", "LinkWorkload", "ConfigFiles", "ProxyServer", nioCore, nioPosix,
            ],
            swiftSettings: settings
        ),
        .target(
            name: "ScenarioWorld",
            dependencies: [
                "Determinism", "HTTPWire", "JSON", "Impairment", "NotesContract", "SyncEngine", "ClientApp",
                "PatternEngine", "ScenarioModel", "NotesService", "ExpenseService", httpTypes,
                "ReaderEngine", "ReaderService",
                "FieldEngine", "FieldService",
            ], swiftSettings: settings),
        .target(
            name: "SimulatedWorld",
            dependencies: [
                "Determinism", "LinkModel", "TCPModel", "HTTPWire", "Impairment", "NotesContract", "SyncEngine",
                "SyncStore", "ClientApp", "ScenarioModel", "ScenarioWorld", "NotesService", httpTypes, nioCore,
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        // Layer 3: scenarios, and what the command line consists of besides arguments.
        .target(
            name: "LiveWorld",
            dependencies: [
                "Determinism", "LinkModel", "HTTPWire", "JSON", "Impairment", "NotesContract", "SyncEngine",
                "SyncStore", "ClientApp", "ScenarioModel", "ScenarioWorld", "ProxyServer", "NotesService",
                "NotesServer", "SyncClient", "ClientSockets", "AppClient", nioCore, nioPosix, logging,
            ],
            swiftSettings: settings
        ),
        .target(
            name: "CommandSupport",
            dependencies: [
                "Determinism", "LinkModel", "Impairment", "JSON", "ScenarioModel", "ConfigFiles", "NotesService",
                "ProxyServer", "PacketCapture", "NotesServer", "ControlAPI", "LinkWorkload", "LiveMeasurement", nioCore,
                nioPosix,
                logging,
            ],
            swiftSettings: settings
        ),
        .target(
            name: "ScenarioRunner",
            dependencies: [
                "Determinism", "LinkModel", "JSON", "SyncEngine", "PatternEngine", "ScenarioModel", "ConfigFiles",
                "NotesService", "ScenarioWorld", "SimulatedWorld", "CommandSupport", "LiveWorld", "PacketCapture",
                "ReaderEngine",
                "FieldEngine",
            ], swiftSettings: settings),
        .target(
            name: "SlowlaneTesting",
            dependencies: [
                "Determinism", "LinkModel", "Impairment", "ScenarioModel", "ConfigFiles", "ProxyServer",
                "ScenarioWorld",
                "SimulatedWorld", nioPosix,
            ],
            swiftSettings: settings
        ),
        .target(
            name: "ToxiproxyCLI",
            dependencies: [
                "JSON", "ControlAPI", "CommandSupport",
            ],
            swiftSettings: settings
        ),
        // Layer 4: arguments, wiring, exit statuses.
        .executableTarget(
            name: "slowlane",
            dependencies: [
                "Determinism", "LinkModel", "TCPModel", "Impairment", "JSON", "SyncEngine", "ScenarioModel",
                "LinkWorkload", "ConfigFiles",
                "ProxyServer", "PacketCapture", "NotesServer", "ControlAPI", "CommandSupport",
                "LiveMeasurement", "NotesService", "ScenarioWorld", "SyncClient", "SyncStore", "ScenarioRunner",
                "ToxiproxyCLI", nioCore,
                nioPosix, logging,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),
        // A package of its own; part of this one too, so that the tests compile and run it.
        .executableTarget(
            name: "ShoppingListExample", dependencies: ["SyncEngine", "SyncClient"],
            path: "Examples/ShoppingList/Sources/ShoppingList", swiftSettings: settings),
        .target(
            name: "TestSupport",
            dependencies: [
                "Determinism", "LinkModel", "ClientApp", httpTypes,
            ], path: "Tests/TestSupport", swiftSettings: settings),
        .testTarget(
            name: "LinkModelTests",
            dependencies: ["Determinism", "LinkModel", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "TCPModelTests",
            dependencies: ["Determinism", "LinkModel", "TCPModel", "TestSupport"],
            swiftSettings: settings),
        .testTarget(name: "JSONTests", dependencies: ["JSON", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "HTTPWireTests",
            dependencies: [
                "Determinism", "LinkModel", "HTTPWire", "TestSupport", httpTypes, nioCore, nioHTTP1,
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "NotesServiceTests",
            dependencies: [
                "Determinism", "HTTPWire", "JSON", "NotesContract", "NotesService", "NotesServer", "HTTPServing",
                "SyncEngine", "TestSupport", httpTypes, nioCore, grdb,
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "HTTPServingTests", dependencies: ["HTTPServing", "HTTPWire", "TestSupport", httpTypes],
            swiftSettings: settings),
        .testTarget(
            name: "SyncEngineTests",
            dependencies: [
                "Determinism", "HTTPWire", "JSON", "NotesContract", "NotesService", "SyncEngine", "TestSupport",
                httpTypes, nioCore,
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PatternEngineTests",
            dependencies: [
                "Determinism", "HTTPWire", "JSON", "ClientApp", "PatternEngine", "ExpenseService", "TestSupport",
                httpTypes,
            ], swiftSettings: settings),
        .testTarget(
            name: "ExpenseServiceTests",
            dependencies: [
                "JSON", "ExpenseService", httpTypes,
            ], swiftSettings: settings),
        .testTarget(
            name: "ReaderEngineTests",
            dependencies: [
                "Determinism", "JSON", "ClientApp", "ReaderEngine", "ReaderService", "TestSupport", httpTypes,
            ], swiftSettings: settings),
        .testTarget(
            name: "ReaderServiceTests", dependencies: ["JSON", "ReaderService", httpTypes], swiftSettings: settings),
        .testTarget(
            name: "FieldServiceTests",
            dependencies: ["JSON", "NotesContract", "FieldService", httpTypes], swiftSettings: settings),
        .testTarget(
            name: "FieldEngineTests",
            dependencies: [
                "Determinism", "JSON", "NotesContract", "ClientApp", "FieldEngine", "FieldService", "TestSupport",
                httpTypes,
            ], swiftSettings: settings),
        .testTarget(
            name: "AppClientTests",
            dependencies: [
                "AppClient", "AppStore", "ClientApp", "ClientSockets", "PatternEngine", "TestSupport", grdb,
            ], swiftSettings: settings),
        .testTarget(
            name: "AppStoreTests",
            dependencies: [
                "AppStore", "ClientApp", "JSON", "TestSupport",
            ], swiftSettings: settings),
        .testTarget(
            name: "SyncStoreTests",
            dependencies: ["JSON", "NotesContract", "SyncEngine", "SyncStore", "TestSupport", grdb, sqlite],
            swiftSettings: settings),
        .testTarget(
            name: "SyncClientTests",
            dependencies: [
                "Determinism", "LinkModel", "HTTPWire", "JSON", "NotesContract", "SyncEngine", "SyncClient",
                "SyncStore",
                "NotesService", "NotesServer", "HTTPServing", "ShoppingListExample", "TestSupport", httpTypes, nioCore,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "LiveWorldTests",
            dependencies: [
                "Determinism", "LinkModel", "HTTPWire", "SyncEngine", "ScenarioModel", "ScenarioWorld",
                "SimulatedWorld",
                "LiveWorld", "ConfigFiles", "SyncClient", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "SimulatedWorldTests",
            dependencies: [
                "Determinism", "LinkModel", "SyncEngine", "PatternEngine", "ScenarioModel", "ScenarioWorld",
                "ConfigFiles",
                "SimulatedWorld", "FieldEngine", "ReaderEngine", "TestSupport",
            ], swiftSettings: settings),
        .testTarget(
            name: "ScenarioRunnerTests",
            dependencies: [
                "Determinism", "JSON", "SyncEngine", "ScenarioModel", "ConfigFiles", "ScenarioWorld", "ScenarioRunner",
                "CommandSupport", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "ScenarioModelTests",
            dependencies: [
                "Determinism", "LinkModel", "ScenarioModel", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "ImpairmentTests",
            dependencies: [
                "Determinism", "LinkModel", "TCPModel", "HTTPWire", "Impairment", "TestSupport", nioCore, nioHTTP1,
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "LinkWorkloadTests",
            dependencies: ["Determinism", "LinkModel", "TCPModel", "LinkWorkload"],
            swiftSettings: settings),
        .testTarget(
            name: "ConfigFilesTests",
            dependencies: [
                "Determinism", "LinkModel", "TCPModel", "Impairment", "ScenarioModel", "ConfigFiles", "TestSupport",
            ],
            exclude: ["Examples"], swiftSettings: settings),
        .testTarget(
            name: "SpliceRelayTests",
            dependencies: [
                "Determinism", "LinkModel", "SpliceRelay", "SystemSockets", "TestSupport", nioCore,
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "ProxyServerTests",
            dependencies: [
                "Determinism", "LinkModel", "TCPModel", "HTTPWire", "Impairment", "ProxyServer", "SpliceRelay",
                "SystemSockets", "NotesServer", "NotesService", "TestSupport", nioCore, nioPosix, nioLocks, logging,
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "PacketCaptureTests",
            dependencies: [
                "Determinism", "LinkModel", "TCPModel", "Impairment", "PacketCapture", "TestSupport", nioCore,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "ControlAPITests",
            dependencies: [
                "LinkModel", "JSON", "ControlAPI", "ConfigFiles", "ProxyServer", "TestSupport", httpTypes, nioCore,
                nioPosix, logging,
            ],
            exclude: ["Python"],
            swiftSettings: settings),
        .testTarget(
            name: "ControlAPIUnitTests",
            dependencies: [
                "Determinism", "LinkModel", "HTTPWire", "JSON", "Impairment", "ScenarioModel", "ConfigFiles",
                "ControlAPI",
                "ProxyServer", "TestSupport", httpTypes, nioCore, nioPosix, logging,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "CommandTests",
            dependencies: [
                "JSON", "NotesContract", "ToxiproxyCLI", "slowlane", "TestSupport", grdb,
            ],
            exclude: ["Python", "Tables"],
            swiftSettings: settings),
        .testTarget(
            name: "CommandSupportTests",
            dependencies: [
                "Determinism", "LinkModel", "JSON", "ScenarioModel", "CommandSupport", "ConfigFiles", "PacketCapture",
                "TestSupport", nioCore, nioPosix, logging,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "SlowlaneTestingTests",
            dependencies: [
                "LinkModel", "Impairment", "ConfigFiles", "ProxyServer", "NotesService", "NotesServer", "ScenarioModel",
                "ScenarioWorld", "SlowlaneTesting", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(name: "TidyTests", dependencies: ["TestSupport"], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
