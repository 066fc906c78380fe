// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "shopping-list",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "slowlane", path: "../..", traits: [])],
    targets: [
        .executableTarget(name: "ShoppingList", dependencies: [.product(name: "LiveClient", package: "slowlane")]),
        .executableTarget(name: "Expenses", dependencies: [.product(name: "LiveClient", package: "slowlane")]),
    ]
)
