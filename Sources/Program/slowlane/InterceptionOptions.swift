internal import ArgumentParser
internal import CommandSupport
internal import ForwardProxy
internal import Foundation
internal import HTTPSockets
internal import Proxy

/// The options that select the hosts whose TLS is intercepted.
struct InterceptionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Intercept the TLS of these hosts, so that faults see their requests: names or patterns such as "
                + "'*.api.test', separated by commas (repeatable).", valueName: "hosts"))
    var intercept: [String] = []

    @Flag(help: "Intercept the TLS of every host.")
    var interceptAll = false

    /// Whether hosts are intercepted.
    var isGiven: Bool { interceptAll || !intercept.isEmpty }

    func validate() throws { _ = try hosts() }

    /// Returns the hosts; `nil` if none are intercepted. Throws a validation error about the first pattern that is wrong.
    func hosts() throws -> InterceptedHosts? {
        if interceptAll {
            if intercept.isEmpty { return .all }
            throw ValidationError("--intercept-all includes every host; leave --intercept out")
        }
        if intercept.isEmpty { return nil }
        do throws(HostRuleError) {
            return try InterceptedHosts(parsing: intercept)
        } catch {
            throw ValidationError("--intercept: \(error)")
        }
    }

    /// Returns the interception; `nil` if no hosts are intercepted. Prints an error and throws an exit status if the
    /// certificates for the upstreams cannot be used.
    func settings(
        _ certificates: UpstreamCertificateOptions, _ console: Console,
        authority: (InterceptedHosts) throws -> CertificateAuthority
    ) throws -> Interception? {
        guard let hosts = try hosts() else { return nil }
        let upstream = try certificates.certificates()
        do throws(UpstreamTLSError) {
            try upstream.check()
        } catch {
            console.error(certificates.message(error))
            throw ExitStatus.usage
        }
        return Interception(hosts: hosts, authority: try authority(hosts), upstream: upstream)
    }

    /// Returns a new authority in memory.
    static func newAuthority(
        for hosts: InterceptedHosts, days: Int, _ console: Console
    ) throws -> CertificateAuthority {
        do throws(CertificateAuthorityError) {
            return try CertificateAuthority(for: hosts, now: Int64(Date().timeIntervalSince1970), days: days)
        } catch {
            console.error(error)
            throw ExitStatus.internalError
        }
    }
}

/// The option of the authority of a proxy in the foreground.
struct InterceptionAuthorityOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Use a new authority, and write the certificate that clients must trust into this PEM file. (default: the "
                + "authority of 'slowlane ca create')", valueName: "file"))
    var interceptCaFile: String?

    /// Returns the authority of a proxy. Prints an error and throws an exit status if there is none.
    func authority(for hosts: InterceptedHosts, _ console: Console) throws -> CertificateAuthority {
        if let interceptCaFile {
            let days = CertificateAuthority.daysMax
            let authority = try InterceptionOptions.newAuthority(for: hosts, days: days, console)
            do {
                try Data(authority.certificatePEM.utf8)
                    .write(to: URL(filePath: interceptCaFile), options: .atomic)
                try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: interceptCaFile)
            } catch {
                console.error("--intercept-ca-file '\(interceptCaFile)': \(error.localizedDescription)")
                throw ExitStatus.unavailable
            }
            return authority
        }
        let folder = AuthorityFolder.ofUser()
        do throws(CertificateAuthorityError) {
            if let authority = try folder.load() {
                try authority.check(hosts, now: Int64(Date().timeIntervalSince1970))
                return authority
            }
        } catch {
            console.error("\(error) (\(folder.path))")
            throw ExitStatus.unavailable
        }
        console.error(
            "--intercept needs an authority that clients trust: run 'slowlane ca create', or give --intercept-ca-file FILE "
                + "for one of this run")
        throw ExitStatus.unavailable
    }

    /// Returns the line about interception for the start of a proxy.
    func announcement(_ interception: Interception) -> String {
        let certificate = interceptCaFile ?? AuthorityFolder.ofUser().certificatePath
        return
            "intercepting TLS of \(interception.hosts); clients must trust \(certificate) (\(interception.authority.name)), "
            + "such as 'curl --cacert \(certificate)'"
    }
}
