internal import ArgumentParser
internal import Foundation
internal import HTTPSockets
internal import Proxy

/// The options of the certificates on connections with TLS to upstreams: `--upstream https://HOST` and `--intercept`.
struct UpstreamCertificateOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Trust the certificate authorities in this PEM file. (default: those of the system)", valueName: "file"))
    var upstreamCa: String?

    @Option(
        help: ArgumentHelp("Certificate for a server that demands one, a PEM file.", valueName: "file"))
    var upstreamCert: String?

    @Option(
        help: ArgumentHelp("Private key of --upstream-cert, a PEM file without a passphrase.", valueName: "file"))
    var upstreamKey: String?

    @Flag(help: "Accept any certificate of the server: the connection to it is not protected.")
    var insecure = false

    /// Whether an option is given.
    var isGiven: Bool { upstreamCa != nil || upstreamCert != nil || upstreamKey != nil || insecure }

    /// Returns the certificates, which are not yet known to be usable. Throws a validation error about the first option
    /// that is wrong.
    func certificates() throws -> UpstreamCertificates {
        if (upstreamCert == nil) != (upstreamKey == nil) {
            throw ValidationError("--upstream-cert and --upstream-key belong together; give both")
        }
        if insecure, upstreamCa != nil {
            throw ValidationError(
                "--insecure accepts any certificate, and --upstream-ca has no effect; give one of them")
        }
        var identity: UpstreamCertificates.Identity?
        if let upstreamCert, let upstreamKey {
            identity = UpstreamCertificates.Identity(
                certificates: try Self.bytes(of: upstreamCert, option: "--upstream-cert"),
                key: try Self.bytes(of: upstreamKey, option: "--upstream-key"))
        }
        return UpstreamCertificates(
            authorities: try upstreamCa.map { try Self.bytes(of: $0, option: "--upstream-ca") }, identity: identity,
            isVerified: !insecure)
    }

    /// Returns the message about certificates that cannot be used.
    func message(_ error: UpstreamTLSError) -> String {
        let name =
            switch error.part {
            case .url: "--upstream"
            case .authorities: upstreamCa.map { "--upstream-ca '\($0)'" } ?? "--upstream-ca"
            case .certificate: "--upstream-cert '\(upstreamCert ?? "")'"
            case .key: "--upstream-key '\(upstreamKey ?? "")'"
            }
        return "\(name): \(error.problem)"
    }

    /// Returns the bytes of a file; throws a validation error if it cannot be read.
    static func bytes(of path: String, option: String) throws -> [UInt8] {
        guard let file = FileHandle(forReadingAtPath: path) else {
            let reason = FileManager.default.fileExists(atPath: path) ? "permission denied" : "no such file"
            throw ValidationError("\(option) '\(path)': \(reason)")
        }
        defer { try? file.close() }
        guard let data = try? file.read(upToCount: UpstreamCertificates.fileBytesMax + 1) else {
            throw ValidationError("\(option) '\(path)': not a regular file")
        }
        guard data.count <= UpstreamCertificates.fileBytesMax else {
            throw ValidationError("\(option) '\(path)': more than \(UpstreamCertificates.fileBytesMax >> 20) MiB")
        }
        return Array(data)
    }
}
