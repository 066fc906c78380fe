// swift-tools-version: 6.2
import PackageDescription

/// Every target of ours: warnings are errors, and an import says whether it shows in the API.
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
        .library(name: "LinkModel", targets: ["LinkModel"]),
        .library(name: "Impairment", targets: ["Impairment"]),
        .library(name: "ProxyServer", targets: ["ProxyServer"]),
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
        // Layer 0: decides. No socket, no clock, no thread, no chance of its own.
        .target(
            name: "LinkModel",
            dependencies: [
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        .target(name: "HTTPWire", dependencies: ["LinkModel", httpTypes, nioCore], swiftSettings: settings),
        .target(name: "JSON", swiftSettings: settings),
        .target(name: "NotesContract", dependencies: ["JSON"], swiftSettings: settings),
        .target(name: "SyncEngine", dependencies: ["NotesContract", "LinkModel"], swiftSettings: settings),
        .target(name: "ScenarioModel", dependencies: ["LinkModel"], swiftSettings: settings),
        .target(
            name: "Impairment",
            dependencies: [
                "LinkModel", "HTTPWire", nioCore,
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        // Layer 1: carries out.
        .target(name: "LinkWorkload", dependencies: ["LinkModel"], swiftSettings: settings),
        .target(
            name: "ConfigFiles",
            dependencies: ["LinkModel", "ScenarioModel", "Yams"],
            resources: [.embedInCode("profiles"), .embedInCode("timelines"), .embedInCode("scenarios")],
            swiftSettings: settings
        ),
        .target(
            name: "NotesService", dependencies: ["JSON", "NotesContract", grdb, sqlite, httpTypes],
            swiftSettings: settings),
        .target(
            name: "SyncStore", dependencies: ["SyncEngine", "NotesContract", "LinkModel", grdb],
            swiftSettings: settings),
        .target(name: "CRelay"),
        .target(name: "SystemSockets", dependencies: ["CRelay", nioCore], swiftSettings: settings),
        .target(
            name: "SpliceRelay",
            dependencies: [
                "CRelay", "SystemSockets", "LinkModel", nioCore, nioLocks,
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "ProxyServer",
            dependencies: [
                "SpliceRelay", "SystemSockets", "Impairment", "LinkModel", nioCore, nioPosix, nioLocks, logging,
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        .systemLibrary(name: "CPcap", pkgConfig: "libpcap", providers: [.apt(["libpcap-dev"]), .brew(["libpcap"])]),
        .target(
            name: "PacketCapture",
            dependencies: [
                "CPcap", "HTTPWire", "LinkModel", nioCore, .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings),
        .target(
            name: "HTTPServing", dependencies: ["HTTPWire", httpTypes, nioCore, nioPosix], swiftSettings: settings),
        // Layer 2: whole programs.
        .target(
            name: "NotesServer", dependencies: ["HTTPServing", "NotesService", httpTypes, nioPosix],
            swiftSettings: settings),
        .target(
            name: "SyncClient",
            dependencies: [
                "SyncStore", "SyncEngine", "NotesContract", "HTTPWire", "LinkModel", nioCore, nioPosix, logging,
            ],
            swiftSettings: settings
        ),
        .target(
            name: "ControlAPI",
            dependencies: [
                "HTTPServing", "ProxyServer", "Impairment", "LinkModel", "ConfigFiles", "JSON", httpTypes, nioCore,
                nioPosix,
                logging,
            ],
            swiftSettings: settings
        ),
        // Layer 3: worlds.
        .target(
            name: "ScenarioRunner",
            dependencies: [
                "ScenarioModel", "LinkModel", "HTTPWire", "Impairment", "ProxyServer", "NotesContract", "NotesService",
                "NotesServer", "SyncEngine", "SyncClient", nioCore, nioPosix, logging,
            ],
            swiftSettings: settings
        ),
        // Layer 4: arguments, wiring, exit status.
        .executableTarget(
            name: "slowlane",
            dependencies: [
                "LinkModel", "LinkWorkload", "Impairment", "ConfigFiles", "ProxyServer", "PacketCapture", "NotesServer",
                "ControlAPI", "JSON", "HTTPWire",
                "NotesService", "NotesContract", "SyncClient", "SyncStore", "SyncEngine", "ScenarioModel",
                "ScenarioRunner", nioCore,
                nioPosix,
                logging,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: settings),
        .testTarget(name: "LinkModelTests", dependencies: ["LinkModel", "TestSupport"], swiftSettings: settings),
        .testTarget(name: "JSONTests", dependencies: ["JSON", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "HTTPWireTests",
            dependencies: [
                "HTTPWire", "LinkModel", "TestSupport", httpTypes, nioCore, nioHTTP1,
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "NotesServiceTests",
            dependencies: [
                "NotesService", "NotesServer", "NotesContract", "JSON", "HTTPServing", "TestSupport", httpTypes, grdb,
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "SyncEngineTests",
            dependencies: ["SyncEngine", "JSON", "NotesContract", "LinkModel", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "SyncStoreTests",
            dependencies: ["SyncStore", "SyncEngine", "NotesContract", "TestSupport", grdb], swiftSettings: settings),
        .testTarget(
            name: "ScenarioModelTests", dependencies: ["ScenarioModel", "ConfigFiles", "LinkModel"],
            swiftSettings: settings),
        .testTarget(
            name: "ImpairmentTests", dependencies: ["Impairment", "HTTPWire", "LinkModel", "TestSupport", nioCore],
            swiftSettings: settings),
        .testTarget(
            name: "LinkWorkloadTests", dependencies: ["LinkWorkload", "LinkModel", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "ConfigFilesTests", dependencies: ["ConfigFiles", "LinkModel", "ScenarioModel", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "SpliceRelayTests",
            dependencies: ["SpliceRelay", "SystemSockets", "LinkModel", "TestSupport", nioCore],
            swiftSettings: settings
        ),
        .testTarget(
            name: "ProxyServerTests",
            dependencies: [
                "ProxyServer", "SpliceRelay", "SystemSockets", "Impairment", "HTTPWire", "LinkModel", "NotesServer",
                "NotesService", "TestSupport", nioCore, nioPosix, nioLocks, logging,
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "PacketCaptureTests",
            dependencies: ["PacketCapture", "Impairment", "LinkModel", "TestSupport", nioCore],
            swiftSettings: settings),
        .testTarget(
            name: "ControlAPITests",
            dependencies: [
                "ControlAPI", "ProxyServer", "Impairment", "LinkModel", "JSON", "TestSupport", httpTypes, nioCore,
                nioPosix, logging,
            ],
            exclude: ["Python"],
            swiftSettings: settings),
        .testTarget(
            name: "CommandTests", dependencies: ["slowlane", "NotesContract", "JSON", "TestSupport", grdb],
            exclude: ["Python", "Tables"],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
