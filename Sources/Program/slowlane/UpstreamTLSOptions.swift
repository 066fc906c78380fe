internal import ArgumentParser
internal import Foundation
internal import Proxy

/// The options of an upstream with TLS, `--upstream https://HOST`.
struct UpstreamTLSOptions: ParsableArguments {
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

    @Flag(
        inversion: .prefixedNo,
        help: ArgumentHelp(
            "Change names between http://HOST:PORT of the client and https://HOST of the server: Host, Location, and the "
                + "attributes Domain and Secure of cookies."))
    var rewriteHost = true

    /// Whether an option is given.
    private var isGiven: Bool {
        upstreamCa != nil || upstreamCert != nil || upstreamKey != nil || insecure || !rewriteHost
    }

    /// Returns the TLS of an upstream; `nil` if the upstream has none. Throws a validation error about the first option
    /// that is wrong.
    func settings(upstream: String?) throws -> UpstreamTLS? {
        guard let upstream, UpstreamTLS.isURL(upstream) else {
            if !isGiven { return nil }
            throw ValidationError(
                "--upstream-ca, --upstream-cert, --upstream-key, --insecure and --no-rewrite-host need --upstream "
                    + "https://HOST")
        }
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
        let authorities = try upstreamCa.map { try Self.bytes(of: $0, option: "--upstream-ca") }
        do throws(UpstreamTLSError) {
            return try UpstreamTLS(
                url: upstream, authorities: authorities, identity: identity, isVerified: !insecure,
                rewritesHost: rewriteHost)
        } catch {
            throw ValidationError("\(name(of: error.part)): \(error.problem)")
        }
    }

    private func name(of part: UpstreamTLSError.Part) -> String {
        switch part {
        case .url: "--upstream"
        case .authorities: upstreamCa.map { "--upstream-ca '\($0)'" } ?? "--upstream-ca"
        case .certificate: "--upstream-cert '\(upstreamCert ?? "")'"
        case .key: "--upstream-key '\(upstreamKey ?? "")'"
        }
    }

    private static func bytes(of path: String, option: String) throws -> [UInt8] {
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
