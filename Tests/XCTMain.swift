import Testing

/// The entry point of the test program on Linux. Without it, SwiftPM searches the compiler's index for tests of XCTest, of
/// which there are none, and writing the index takes longer.
@main struct TestProgram {
    static func main() async {
        // `swift test` starts the program a second time for the tests of XCTest.
        if CommandLine.arguments.contains("swift-testing") { await Testing.__swiftPMEntryPoint() as Never }
    }
}
