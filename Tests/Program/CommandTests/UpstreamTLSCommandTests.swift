import Foundation
import TestSupport
import Testing

/// `slowlane proxy --upstream https://HOST`, with curl as the client.
@Suite(.tags(.tools), .timeLimit(.minutes(5))) struct UpstreamTLSCommandTests {
    private static let certificates = try? TestCertificates()

    private static func made() throws -> TestCertificates { try #require(certificates, "openssl is missing") }

    /// Runs curl with a URL of a proxy, and returns its output.
    private static func curl(_ options: String..., port: String, path: String = "/") async throws -> String {
        let arguments = ["-s", "--max-time", "30"] + options + ["http://127.0.0.1:\(port)\(path)"]
        return try await blocking {
            let (status, output, errors) = try runProgram("curl", arguments)
            #expect(status == 0, "curl \(arguments): \(errors)")
            return output
        }
    }

    private static func port(of proxy: Command) async throws -> String {
        let line = try await proxy.output.line(with: "listening on ")
        return String(try #require(line.split(separator: " ")[2].split(separator: ":").last))
    }

    @Test func curlReachesAnHTTPSServerThroughTheProxy() async throws {
        let certificates = try Self.made()
        let server = try TLSServer(certificates)
        let proxy = try Command([
            "proxy", "--upstream", "https://localhost:\(server.port)", "--upstream-ca", certificates.certificate("ca"),
        ])
        let port = try await Self.port(of: proxy)
        #expect(proxy.output.text.contains("-> https://localhost:\(server.port), "))
        let output = try await Self.curl(port: port, path: "/a")
        #expect(output == "GET /a host=localhost:\(server.port) sni=localhost alpn=http/1.1")
        // curl follows the redirect to the proxy, and sends the cookie of the proxy's host back.
        let followed = try await Self.curl(
            "-L", "-b", "", "-w", " %{num_redirects} %{url_effective}", port: port, path: "/redirect")
        #expect(followed.hasSuffix(" 1 http://127.0.0.1:\(port)/next"), "\(followed)")
        proxy.type("status\nquit\n")
        let status = try await proxy.output.line(with: "ok profile")
        #expect(
            status.contains(", rewritten: 3 Host 1 Location 1 Set-Cookie") && !status.contains("VERIFIED"), "\(status)")
        #expect(await proxy.end() == 0)
    }

    @Test func aCertificateThatIsNotAcceptedIsAWarningAndAResponse() async throws {
        let certificates = try Self.made()
        let server = try TLSServer(certificates, "expired")
        let proxy = try Command([
            "proxy", "--upstream", "https://localhost:\(server.port)", "--upstream-ca", certificates.certificate("ca"),
        ])
        let port = try await Self.port(of: proxy)
        let output = try await Self.curl("-w", "%{http_code}", port: port)
        #expect(output.contains("the certificate has expired") && output.hasSuffix("502"), "\(output)")
        let warning = try await proxy.errors.line(with: "cannot connect to the upstream")
        #expect(
            warning.contains("https://localhost:\(server.port): the certificate has expired")
                && warning.contains("; renew the certificate of the server (1 failed so far)"), "\(warning)")
        proxy.type("quit\n")
        #expect(await proxy.end() == 0)
    }

    @Test func anUnverifiedUpstreamIsAWarningAtTheStartAndInTheStatus() async throws {
        let server = try TLSServer(try Self.made(), "expired")
        let proxy = try Command(["proxy", "--upstream", "https://localhost:\(server.port)", "--insecure"])
        let port = try await Self.port(of: proxy)
        let warning = try await proxy.errors.line(with: "NOT verified")
        #expect(warning.contains("the certificate of https://localhost:\(server.port) is NOT verified (--insecure)"))
        #expect(try await Self.curl("-w", "%{http_code}", port: port).hasSuffix("200"))
        proxy.type("status\nquit\n")
        #expect(try await proxy.output.line(with: "ok profile").contains("NOT VERIFIED (--insecure)"))
        #expect(await proxy.end() == 0)
    }

    // MARK: slowlane create

    @Test func aCreatedProxyTrustsTheAuthorityOfAFile() async throws {
        let certificates = try Self.made()
        let target = try TLSServer(certificates)
        let server = try Command(["server", "--port", "0"])
        let line = try await server.output.line(with: "listening on ")
        let url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
        let ca = certificates.certificate("ca")
        func create(_ name: String, _ options: String...) async throws -> Command.Result {
            try await Command.run(["create", name, "--host", url, "--json"] + options)
        }
        let upstream = "https://localhost:\(target.port)"
        let created = try await create("one", "--upstream", upstream, "--upstream-ca", ca, "--no-rewrite-host")
        #expect(created.status == 0, "\(created.errors)")
        let listen = try #require(created.output.split(separator: "\"").first { $0.hasPrefix("127.0.0.1:") })
        let port = String(try #require(listen.split(separator: ":").last))
        // The name is not changed.
        let output = try await Self.curl(port: port, path: "/a")
        #expect(output == "GET /a host=127.0.0.1:\(port) sni=localhost alpn=http/1.1")
        let forward = try await create("two", "--forward", "--intercept", "localhost", "--upstream-ca", ca)
        #expect(forward.status == 0, "\(forward.errors)")
        for (options, message) in [
            (["--upstream", "8000", "--upstream-ca", ca], "need --upstream https://HOST or --intercept HOST"),
            (["--upstream", upstream, "--upstream-ca", "/nowhere"], "--upstream-ca '/nowhere': no such file"),
            (
                ["--forward", "--intercept", "a.test", "--upstream-ca", "/nowhere"],
                "--upstream-ca '/nowhere': no such file"
            ),
            (["--upstream", upstream, "--upstream-key", ca], "--upstream-cert and --upstream-key belong together"),
        ] {
            let result = try await Command.run(["create", "three", "--host", url] + options)
            #expect(result.status == 64 && result.errors.contains(message), "\(options): \(result.errors)")
        }
        server.signal(SIGTERM)
        #expect(await server.end() == 0)
    }

    // MARK: Errors

    @Test(arguments: [
        (["--upstream", "8000", "--insecure"], "--insecure need --upstream https://HOST or --intercept HOST"),
        (
            ["--upstream", "https://a.test", "--upstream-cert", "x.pem"],
            "--upstream-cert and --upstream-key belong together"
        ),
        (["--upstream", "https://a.test", "--upstream-ca", "/nowhere"], "--upstream-ca '/nowhere': no such file"),
        (["--upstream", "https://a.test", "--upstream-ca", "/etc/hostname"], "there is no certificate in PEM form"),
        (["--upstream", "https://a.test", "--upstream-ca", "/"], "--upstream-ca '/': not a regular file"),
        (["--upstream", "https://a.test/v1"], "--upstream: the URL of an upstream has no path"),
        (["--upstream", "https://a.test:0"], "--upstream: the port is not a number from 1 to 65535"),
        (["--forward", "--insecure"], "--insecure need --upstream https://HOST or --intercept HOST"),
        (["--upstream", "https://a.test", "--insecure", "--upstream-ca", "/x"], "give one of them"),
    ]) func wrongOptionsAreErrors(_ options: [String], message: String) async throws {
        let result = try await Command.run(["proxy"] + options)
        #expect(result.status == 64)
        #expect(result.errors.contains(message), "\(result.errors)")
    }
}
