// swift-tools-version: 6.2
import PackageDescription

// A separate package, so that builds of Slowlane do not include it.
let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "slowlane", path: ".."),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    ],
    targets: [
        .executableTarget(
            name: "DatagramFigures",
            dependencies: [
                .product(name: "LinkModel", package: "slowlane"), .product(name: "Impairment", package: "slowlane"),
                .product(name: "NIOCore", package: "swift-nio"),
            ]),
        .executableTarget(
            name: "LinkBenchmark",
            dependencies: [
                .product(name: "LinkModel", package: "slowlane"), .product(name: "TCPModel", package: "slowlane"),
            ]),
        .executableTarget(name: "Load"),
        .executableTarget(
            name: "ProxyBenchmark",
            dependencies: [
                .product(name: "LinkModel", package: "slowlane"), .product(name: "Proxy", package: "slowlane"),
                .product(name: "Impairment", package: "slowlane"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ]),
        .executableTarget(
            name: "ScenarioBenchmark",
            dependencies: [
                .product(name: "Worlds", package: "slowlane"), .product(name: "MutantGallery", package: "slowlane"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)
