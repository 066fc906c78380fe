// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that nobody who builds Slowlane builds this.
let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "slowlane", path: "..")],
    targets: [
        .executableTarget(
            name: "LinkBenchmark", dependencies: [.product(name: "LinkModel", package: "slowlane")])
    ],
    swiftLanguageModes: [.v6]
)
