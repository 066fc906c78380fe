// swift-tools-version: 6.2
import PackageDescription

/// The settings of every target: warnings are errors, and each import states whether it is part of the API.
let settings: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
]

/// The packages of modules that are not of this package.
let packages = [
    "ArgumentParser": "swift-argument-parser",
    "Crypto": "swift-crypto",
    "DequeModule": "swift-collections",
    "HeapModule": "swift-collections",
    "GRDB": "GRDB.swift",
    "GRDBSQLite": "GRDB.swift",
    "HTTPTypes": "swift-http-types",
    "Logging": "swift-log",
    "NIOConcurrencyHelpers": "swift-nio",
    "NIOCore": "swift-nio",
    "NIOEmbedded": "swift-nio",
    "NIOHPACK": "swift-nio-http2",
    "NIOHTTP1": "swift-nio",
    "NIOPosix": "swift-nio",
    "NIOSSL": "swift-nio-ssl",
    "NIOTLS": "swift-nio",
    "SwiftASN1": "swift-asn1",
    "X509": "swift-certificates",
    "Yams": "Yams",
]

/// The modules of the trait `TLS`, most of whose build time is that of BoringSSL, which two of their packages contain.
let modulesOfTLS: Set = ["Crypto", "NIOSSL", "SwiftASN1", "X509"]

/// The apps, one line each: the engine and the service of an app, as values, with the modules that they import.
let apps: KeyValuePairs = [
    "Expense": ["Determinism", "Wire", "Client", "HTTPTypes"],
    "Reader": ["Determinism", "Wire", "Client", "HTTPTypes"],
    "Field": ["Determinism", "Wire", "NotesContract", "Client", "HTTPTypes"],
]
let appNames = apps.map(\.key)

/// Returns the dependencies on modules, of this package or of others.
func dependencies(_ modules: [String]) -> [Target.Dependency] {
    modules.map { name in
        guard let package = packages[name] else { return .byName(name: name) }
        return .product(
            name: name, package: package, condition: modulesOfTLS.contains(name) ? .when(traits: ["TLS"]) : nil)
    }
}

/// Returns a target in the folder of its layer, with the modules that its files import; `Tests/TidyTests` compares them.
func target(_ layer: String, _ name: String, _ modules: [String], exclude: [String] = []) -> Target {
    .target(
        name: name, dependencies: dependencies(modules), path: "Sources/\(layer)/\(name)", exclude: exclude,
        swiftSettings: settings)
}

/// Returns the target of a program.
func program(_ layer: String, _ name: String, _ modules: [String]) -> Target {
    .executableTarget(
        name: name, dependencies: dependencies(modules), path: "Sources/\(layer)/\(name)", swiftSettings: settings)
}

/// Returns the tests of a target.
func tests(_ layer: String, _ name: String, _ modules: [String], exclude: [String] = []) -> Target {
    .testTarget(
        name: name, dependencies: dependencies(modules), path: "Tests/\(layer)/\(name)", exclude: exclude,
        swiftSettings: settings)
}

let package = Package(
    name: "slowlane",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "slowlane", targets: ["slowlane"]),
        .library(name: "Determinism", targets: ["Determinism"]),
        .library(name: "LinkModel", targets: ["LinkModel"]),
        .library(name: "TCPModel", targets: ["TCPModel"]),
        .library(name: "Impairment", targets: ["Impairment"]),
        .library(name: "Proxy", targets: ["Proxy"]),
        .library(name: "LiveClient", targets: ["Client", "LiveClient"]),
        .library(name: "Worlds", targets: ["ConfigFiles", "Scenario", "Worlds"]),
        .library(name: "MutantGallery", targets: ["MutantGallery"]),
        .library(name: "SlowlaneTesting", targets: ["SlowlaneTesting"]),
        .library(name: "SlowlaneScenarioTesting", targets: ["SlowlaneScenarioTesting"]),
    ],
    traits: [
        .trait(name: "TLS", description: "Upstreams with TLS (https://) and the interception of TLS"),
        .default(enabledTraits: ["TLS"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        // Decisions. No sockets, clocks, threads or randomness of their own.
        target("Core", "Determinism", []),
        target("Core", "Wire", ["Determinism", "DequeModule", "HTTPTypes", "NIOCore", "NIOHPACK"]),
        target("Core", "LinkModel", ["Determinism", "DequeModule", "HeapModule"]),
        target("Core", "TCPModel", ["Determinism", "LinkModel", "DequeModule", "HeapModule"]),
        target(
            "Core", "Impairment",
            ["Determinism", "Wire", "LinkModel", "TCPModel", "DequeModule", "HeapModule", "NIOCore"]),
        target("Core", "ForwardProxy", ["Determinism", "Wire", "DequeModule", "HTTPTypes", "NIOCore"]),
        target("Core", "NotesContract", ["Wire"]),
        target("Core", "Client", ["Determinism", "Wire", "NotesContract", "DequeModule", "HeapModule", "NIOCore"]),
        target("Core", "Scenario", ["Determinism", "Wire", "LinkModel", "Impairment"]),
        // Files, sockets, clocks and threads.
        target(
            "Drivers", "ConfigFiles",
            ["Determinism", "Wire", "LinkModel", "Impairment", "Scenario", "CResources", "Yams"]),
        target(
            "Drivers", "HTTPSockets",
            ["Determinism", "Wire", "ForwardProxy", "HTTPTypes", "NIOCore", "NIOPosix", "NIOSSL", "NIOTLS"]),
        target(
            "Drivers", "Proxy",
            [
                "Determinism", "Wire", "LinkModel", "TCPModel", "Impairment", "ForwardProxy", "HTTPSockets", "CRelay",
                "Crypto", "DequeModule", "HeapModule", "Logging", "NIOConcurrencyHelpers", "NIOCore", "NIOEmbedded",
                "NIOPosix", "NIOSSL", "NIOTLS", "SwiftASN1", "X509",
            ]),
        target(
            "Drivers", "PacketCapture",
            ["Determinism", "Wire", "LinkModel", "TCPModel", "CPcap", "HeapModule", "NIOCore"]),
        target("Drivers", "NotesService", ["Determinism", "Wire", "NotesContract", "GRDB", "GRDBSQLite", "HTTPTypes"]),
        target("Drivers", "NotesServer", ["Wire", "HTTPSockets", "NotesService", "HTTPTypes", "NIOPosix"]),
        target(
            "Drivers", "LiveClient",
            [
                "Determinism", "Wire", "NotesContract", "Client", "ForwardProxy", "HTTPSockets", "GRDB", "GRDBSQLite",
                "Logging", "NIOCore", "NIOPosix",
            ]),
        target(
            "Drivers", "ControlAPI",
            [
                "Determinism", "Wire", "LinkModel", "Impairment", "ForwardProxy", "Scenario", "ConfigFiles", "Proxy",
                "HTTPSockets", "HTTPTypes", "Logging", "NIOCore", "NIOPosix",
            ]),
        target(
            "Drivers", "Worlds",
            [
                "Determinism", "Wire", "LinkModel", "TCPModel", "Impairment", "NotesContract", "Client", "Scenario",
                "NotesService", "LiveClient", "DequeModule", "HTTPTypes", "HeapModule", "NIOCore",
            ] + appNames),
        target("Drivers", "CommandTraffic", ["ForwardProxy", "CRelay"]),
        target(
            "Drivers", "LiveWorld",
            [
                "Determinism", "Wire", "LinkModel", "Impairment", "NotesContract", "Client", "Scenario", "ForwardProxy",
                "Proxy", "HTTPSockets", "NotesServer", "LiveClient", "Worlds", "CommandTraffic", "NIOCore", "NIOPosix",
            ]),
        target("Drivers", "CommandSupport", ["Determinism", "Wire", "LinkModel", "HTTPSockets", "Proxy", "Logging"]),
        target(
            "Drivers", "ScenarioRunner",
            [
                "Determinism", "Wire", "LinkModel", "Scenario", "ConfigFiles", "PacketCapture", "Worlds", "LiveWorld",
                "CommandSupport",
            ]),
        // Deliberate defects; arguments, sessions, texts; traits for tests.
        target(
            "Program", "MutantGallery",
            ["Determinism", "Client", "Scenario", "NotesService", "Worlds", "ScenarioRunner"] + appNames),
        program(
            "Program", "slowlane",
            [
                "Determinism", "Wire", "LinkModel", "TCPModel", "Impairment", "Client", "Scenario", "ConfigFiles",
                "ForwardProxy", "HTTPSockets", "Proxy", "PacketCapture", "NotesService", "NotesServer", "LiveClient",
                "ControlAPI",
                "CommandTraffic", "CommandSupport", "ScenarioRunner", "MutantGallery", "ArgumentParser", "HTTPTypes",
                "Logging", "NIOCore", "NIOPosix",
            ]),
        target(
            "Program", "SlowlaneTesting",
            [
                "Determinism", "LinkModel", "Impairment", "ForwardProxy", "ConfigFiles", "HTTPSockets", "Proxy",
                "NIOPosix",
            ]),
        target("Program", "SlowlaneScenarioTesting", ["Scenario", "ConfigFiles", "Worlds"]),
        // C: declarations of system calls and of libpcap, and the files in the program.
        .target(name: "CResources", path: "Sources/C/CResources", exclude: ["dashboard"]),
        .target(name: "CRelay", path: "Sources/C/CRelay"),
        .target(name: "CPcap", path: "Sources/C/CPcap"),
        // A package of its own; part of this one too, so that the tests compile and run its programs.
        .executableTarget(
            name: "ShoppingListExample", dependencies: ["Client", "LiveClient"],
            path: "Examples/ShoppingList/Sources/ShoppingList", swiftSettings: settings),
        .executableTarget(
            name: "ExpensesExample", dependencies: ["Client", "LiveClient"],
            path: "Examples/ShoppingList/Sources/Expenses", swiftSettings: settings),
        // Tests, in the folders of the same layers.
        .target(
            name: "TestSupport", dependencies: dependencies(["Determinism", "LinkModel", "Client", "HTTPTypes"]),
            path: "Tests/TestSupport",
            swiftSettings: settings),
        tests(
            "Core", "WireTests",
            ["Determinism", "Wire", "TestSupport", "HTTPTypes", "NIOCore", "NIOEmbedded", "NIOHTTP1"]),
        tests("Core", "LinkModelTests", ["Determinism", "LinkModel", "TestSupport"]),
        tests("Core", "TCPModelTests", ["Determinism", "LinkModel", "TCPModel", "TestSupport"]),
        tests(
            "Core", "ImpairmentTests",
            [
                "Determinism", "Wire", "LinkModel", "TCPModel", "Impairment", "TestSupport", "NIOCore", "NIOEmbedded",
                "NIOHPACK", "NIOHTTP1",
            ]),
        tests(
            "Core", "ClientTests",
            [
                "Determinism", "Wire", "NotesContract", "Client", "NotesService", "TestSupport", "HTTPTypes",
                "HeapModule", "NIOCore",
            ]),
        tests("Core", "ForwardProxyTests", ["Determinism", "ForwardProxy", "Wire", "TestSupport", "NIOCore"]),
        tests("Core", "ScenarioTests", ["Determinism", "LinkModel", "Scenario", "TestSupport"]),
        tests(
            "Drivers", "ConfigFilesTests",
            [
                "Determinism", "LinkModel", "TCPModel", "Impairment", "Scenario", "ConfigFiles", "TestSupport",
            ], exclude: ["Examples"]),
        tests(
            "Drivers", "ProxyTests",
            [
                "Determinism", "Wire", "LinkModel", "TCPModel", "Impairment", "ForwardProxy", "HTTPSockets", "Proxy",
                "NotesService", "NotesServer", "TestSupport", "Logging", "NIOConcurrencyHelpers", "NIOCore", "NIOPosix",
                "NIOSSL",
            ]),
        tests(
            "Drivers", "PacketCaptureTests",
            ["Determinism", "LinkModel", "TCPModel", "Impairment", "PacketCapture", "TestSupport", "NIOCore"]),
        tests("Drivers", "HTTPSocketsTests", ["Wire", "HTTPSockets", "TestSupport", "HTTPTypes", "NIOCore"]),
        tests(
            "Drivers", "LiveClientTests",
            [
                "Determinism", "Wire", "NotesContract", "Client", "Expense", "HTTPSockets", "NotesService",
                "NotesServer",
                "LiveClient", "ShoppingListExample", "TestSupport", "GRDB", "GRDBSQLite", "HTTPTypes", "NIOCore",
            ]),
        tests(
            "Drivers", "NotesServiceTests",
            [
                "Determinism", "Wire", "NotesContract", "Client", "HTTPSockets", "NotesService", "NotesServer",
                "TestSupport", "GRDB", "HTTPTypes", "NIOCore",
            ]),
        tests(
            "Drivers", "ControlAPITests",
            [
                "Wire", "LinkModel", "ForwardProxy", "ConfigFiles", "Proxy", "ControlAPI", "TestSupport", "HTTPTypes",
                "Logging", "NIOCore", "NIOPosix",
            ], exclude: ["Python"]),
        tests(
            "Drivers", "ControlAPIUnitTests",
            [
                "Determinism", "Wire", "LinkModel", "Impairment", "ForwardProxy", "Scenario", "ConfigFiles", "Proxy",
                "ControlAPI", "TestSupport", "HTTPTypes", "Logging", "NIOCore", "NIOPosix",
            ]),
        tests("Drivers", "CommandTrafficTests", ["CommandTraffic", "TestSupport"]),
        tests(
            "Drivers", "WorldsTests",
            [
                "Determinism", "LinkModel", "Client", "Scenario", "ConfigFiles", "Worlds", "ScenarioRunner",
                "MutantGallery", "TestSupport",
            ] + appNames),
        tests(
            "Drivers", "LiveWorldTests",
            [
                "Determinism", "Wire", "LinkModel", "Impairment", "Client", "Scenario", "ConfigFiles", "HTTPSockets",
                "Worlds", "LiveWorld", "ScenarioRunner", "MutantGallery", "TestSupport",
            ]),
        tests(
            "Drivers", "ScenarioRunnerTests",
            [
                "Determinism", "Wire", "LinkModel", "Client", "Scenario", "ConfigFiles", "Worlds", "CommandSupport",
                "ScenarioRunner", "MutantGallery", "TestSupport",
            ]),
        tests(
            "Program", "CommandSupportTests",
            [
                "Determinism", "Wire", "LinkModel", "ForwardProxy", "Scenario", "ConfigFiles", "Proxy", "PacketCapture",
                "CommandTraffic", "CommandSupport", "slowlane", "TestSupport", "Logging",
            ]),
        tests(
            "Program", "CommandTests",
            ["Wire", "NotesContract", "slowlane", "TestSupport", "GRDB"], exclude: ["Python", "Tables"]),
        tests(
            "Program", "SlowlaneTestingTests",
            [
                "LinkModel", "Impairment", "ForwardProxy", "Scenario", "ConfigFiles", "Proxy", "NotesService",
                "NotesServer", "Worlds", "SlowlaneTesting", "SlowlaneScenarioTesting", "TestSupport",
            ]),
        tests("", "TidyTests", ["TestSupport"]),
    ],
    swiftLanguageModes: [.v6]
)

for (name, modules) in apps {
    package.targets.append(target("Apps", name, modules))
    package.targets.append(tests("Apps", "\(name)Tests", modules + [name, "TestSupport"]))
}
