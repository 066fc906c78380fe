import Foundation
import TestSupport
import Testing

@testable import CommandTraffic

/// The certificates that a command must trust.
@Suite struct TrustFolderTests {
    private let folder: TemporaryFolder
    private let authority = TrustFolder.Authority(
        certificate: "-----BEGIN own\n", keyDigest: "digest", javaKeyStore: { Array("store \($0.count)".utf8) })

    init() throws { folder = try TemporaryFolder() }

    private func trust(_ environment: [String: String] = [:], system: String? = "-----BEGIN system\n") throws
        -> TrustFolder
    {
        let path = folder.path("system.pem")
        if let system { try write(system, path) }
        return try TrustFolder(
            authority, in: folder.url.path, environment: environment, systemFiles: ["/nowhere", path])
    }

    private func write(_ text: String, _ path: String) throws { try Data(text.utf8).write(to: URL(filePath: path)) }

    private func text(_ name: String, _ trust: TrustFolder) throws -> String {
        let paths = trust.variables.filter { $0.name == name }.map(\.value)
        #expect(paths.count == 1)
        return try String(contentsOfFile: paths.first ?? "", encoding: .utf8)
    }

    @Test func aVariableThatReplacesHasTheSystemsCertificatesToo() throws {
        let trust = try trust()
        #expect(try text("SSL_CERT_FILE", trust) == "-----BEGIN system\n-----BEGIN own\n")
        #expect(try text("NODE_EXTRA_CA_CERTS", trust) == "-----BEGIN own\n")
        #expect(trust.variables.count == 10 && trust.limitations.isEmpty)
        #expect(Set(trust.variables.map(\.value)).count == 2)
        trust.remove()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["system.pem"])
    }

    @Test func aVariableThatIsSetKeepsItsOwnCertificates() throws {
        let (file, directory) = (folder.path("file.pem"), folder.path("certs"))
        try write("-----BEGIN file", file)
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try write("-----BEGIN one\n", "\(directory)/1.pem")
        try write("-----BEGIN two\n", "\(directory)/2.pem")
        try write("no certificate", "\(directory)/README")
        try FileManager.default.createSymbolicLink(atPath: "\(directory)/0.0", withDestinationPath: "1.pem")
        let trust = try trust([
            "CURL_CA_BUNDLE": file, "REQUESTS_CA_BUNDLE": directory, "NODE_EXTRA_CA_CERTS": file,
            "PIP_CERT": "/nowhere",
            "GIT_SSL_CAINFO": "",
        ])
        #expect(try text("CURL_CA_BUNDLE", trust) == "-----BEGIN file\n-----BEGIN own\n")
        #expect(try text("NODE_EXTRA_CA_CERTS", trust) == "-----BEGIN file\n-----BEGIN own\n")
        #expect(try text("REQUESTS_CA_BUNDLE", trust) == "-----BEGIN one\n-----BEGIN two\n-----BEGIN own\n")
        for name in ["SSL_CERT_FILE", "PIP_CERT", "GIT_SSL_CAINFO"] {
            #expect(try text(name, trust) == "-----BEGIN system\n-----BEGIN own\n")
        }
        #expect(trust.limitations == ["PIP_CERT=/nowhere cannot be read; the certificates of the system are used"])
    }

    @Test func aTrustStoreOfTheUserRemains() throws {
        let trust = try trust(["JAVA_TOOL_OPTIONS": "-Xmx1g -Djavax.net.ssl.trustStore=/x"])
        #expect(trust.javaOptions == nil && trust.limitations.first?.contains("JAVA_TOOL_OPTIONS") == true)
        let options = try #require(try self.trust().javaOptions)
        #expect(options.hasPrefix("-Djavax.net.ssl.trustStore=/"))
        let store = try String(contentsOfFile: String(options.dropFirst(27)), encoding: .utf8)
        #expect(store == "store \("-----BEGIN system\n".count)")
    }

    @Test func aSystemWithoutCertificatesIsALimitation() throws {
        let trust = try trust(system: nil)
        #expect(try text("SSL_CERT_FILE", trust) == "-----BEGIN own\n")
        #expect(trust.limitations.count == 1)
    }
}
