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
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
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
        .target(
            name: "Impairment",
            dependencies: [
                "LinkModel", nioCore,
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        // Layer 1: carries out.
        .target(name: "LinkWorkload", dependencies: ["LinkModel"], swiftSettings: settings),
        .target(
            name: "Files",
            dependencies: ["LinkModel", "Yams"],
            resources: [.embedInCode("profiles"), .embedInCode("timelines")],
            swiftSettings: settings
        ),
        .target(
            name: "ProxyServer",
            dependencies: ["Impairment", "LinkModel", nioCore, nioPosix, logging],
            swiftSettings: settings
        ),
        // Layer 4: arguments, wiring, exit status.
        .executableTarget(
            name: "slowlane",
            dependencies: [
                "LinkModel", "LinkWorkload", "Impairment", "Files", "ProxyServer", nioCore, nioPosix, logging,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: settings),
        .testTarget(name: "LinkModelTests", dependencies: ["LinkModel", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "ImpairmentTests", dependencies: ["Impairment", "LinkModel", "TestSupport", nioCore],
            swiftSettings: settings),
        .testTarget(
            name: "LinkWorkloadTests", dependencies: ["LinkWorkload", "LinkModel", "TestSupport"],
            swiftSettings: settings),
        .testTarget(name: "FilesTests", dependencies: ["Files", "LinkModel"], swiftSettings: settings),
        .testTarget(
            name: "ProxyServerTests",
            dependencies: ["ProxyServer", "Impairment", "LinkModel", "TestSupport", nioCore, nioPosix, logging],
            swiftSettings: settings
        ),
        .testTarget(name: "CommandTests", dependencies: ["slowlane", "TestSupport"], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
