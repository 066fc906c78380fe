import Foundation
import TestSupport
import Testing

/// `slowlane ca`, and the options that use its authority.
@Suite(.tags(.tools), .timeLimit(.minutes(5))) struct AuthorityCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var authority: String { folder.path("slowlane/ca") }

    /// Runs a script with the program as `$0`, and with its authority in the folder of the test.
    private func run(_ script: String, _ arguments: String...) throws -> Command.Result {
        let (status, output, errors) = try runProgram(
            "/bin/sh", ["-c", "export XDG_DATA_HOME=\(folder.url.path)\n\(script)", Command.binary.path()] + arguments)
        return Command.Result(status: status, output: output, errors: errors)
    }

    private func mode(_ path: String) throws -> Int? {
        (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
    }

    @Test(arguments: ["000", "022", "077", "777"]) func onlyTheOwnerMayReadTheFilesUnderAnyMask(_ mask: String) throws {
        try FileManager.default.createDirectory(atPath: folder.path("slowlane"), withIntermediateDirectories: true)
        let result = try run("umask \(mask); exec \"$0\" ca create --for api.test")
        #expect(result.status == 0, "\(result.errors)")
        #expect(try mode(authority) == 0o700)
        let names = try FileManager.default.contentsOfDirectory(atPath: authority).sorted()
        #expect(names == ["ca.pem", "issuer.key", "issuer.pem"])
        for name in names { #expect(try mode("\(authority)/\(name)") == 0o600) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("slowlane")) == ["ca"])
    }

    @Test func anAuthorityIsCreatedOnceShownExportedAndDeleted() throws {
        let created = try run("\"$0\" ca create --days 7 --for api.test --for '*.cdn.test'")
        #expect(created.status == 0 && created.errors.isEmpty, "\(created.errors)")
        let key = try Data(contentsOf: URL(filePath: "\(authority)/issuer.key"))
        let again = try run("\"$0\" ca create")
        #expect(
            again.status == 69 && again.errors.contains("there is an authority in '\(authority)'"), "\(again.errors)")
        #expect(try Data(contentsOf: URL(filePath: "\(authority)/issuer.key")) == key)
        let shown = try run("\"$0\" ca show")
        #expect(shown.status == 0 && shown.output == created.output)
        #expect(shown.output.contains("hosts        api.test, *.api.test, cdn.test, *.cdn.test\n"), "\(shown.output)")
        let digest = try run("openssl x509 -in \(authority)/ca.pem -noout -fingerprint -sha256").output
        let fingerprint = try #require(digest.split(separator: "=").last).trimmingCharacters(in: .newlines)
        #expect(shown.output.contains("SHA-256      \(fingerprint)\n"))
        for word in [
            "update-ca-certificates --fresh", "security delete-certificate", "certutil -user -delstore",
            "keytool -delete",
        ] {
            #expect(shown.output.contains(word), "\(word)")
        }
        let exported = try run("\"$0\" ca export")
        #expect(try exported.output == String(contentsOfFile: "\(authority)/ca.pem", encoding: .utf8))
        #expect(exported.errors.contains("update-ca-trust") && !exported.errors.contains("PRIVATE"))
        let same = try run(
            "\"$0\" ca export --format der 2>/dev/null | openssl x509 -inform der -noout -fingerprint -sha256")
        #expect(same.output == digest)
        let deleted = try run("\"$0\" ca delete")
        #expect(deleted.status == 0 && deleted.output.contains("certutil -user -delstore"), "\(deleted.output)")
        #expect(!FileManager.default.fileExists(atPath: authority))
        for name in ["show", "export", "delete"] {
            let none = try run("\"$0\" ca \(name)")
            #expect(
                none.status == 1 && none.errors.contains("there is no authority in '\(authority)'"), "\(none.errors)")
        }
    }

    @Test(arguments: [("issuer.key", "640"), ("ca.pem", "604"), ("", "755"), ("", "710")])
    func anAuthorityThatOthersCanReadIsRefused(_ name: String, _ mode: String) throws {
        let path = name.isEmpty ? authority : "\(authority)/\(name)"
        let result = try run("\"$0\" ca create >/dev/null 2>&1; chmod \(mode) \(path); exec \"$0\" ca show")
        #expect(result.status == 69 && result.output.isEmpty)
        #expect(result.errors.contains("other users have access to '\(path)' (mode \(mode))"), "\(result.errors)")
        let proxy = try run("exec \"$0\" proxy --forward --intercept api.test")
        #expect(proxy.status == 69 && proxy.errors.contains("other users have access"), "\(proxy.errors)")
    }

    @Test func filesThatAreNoAuthorityAreErrors() throws {
        let link = try run(
            "\"$0\" ca create >/dev/null 2>&1; cd \(authority); mv issuer.key ../key; ln -s ../key issuer.key; exec \"$0\" ca show"
        )
        #expect(link.status == 69 && link.errors.contains("cannot read '\(authority)/issuer.key'"), "\(link.errors)")
        let rubbish = try run(
            "cd \(authority); rm issuer.key; umask 077; echo rubbish > issuer.key; exec \"$0\" ca show")
        #expect(rubbish.status == 69 && rubbish.errors.contains("cannot be read"), "\(rubbish.errors)")
        let file = try run("rm -r \(authority); echo > \(authority); exec \"$0\" ca show")
        #expect(file.status == 69 && file.errors.contains("is not a folder"), "\(file.errors)")
        let create = try run("exec \"$0\" ca create")
        #expect(create.status == 69 && create.errors.contains("there is an authority"), "\(create.errors)")
    }

    @Test(arguments: [
        (["ca", "create", "--days", "91"], "--days 91 must be from 1 to 90"),
        (["ca", "create", "--for", "*"], "every host"),
        (["ca", "create", "--for", "api.test:443"], "a port"),
        (["proxy", "--forward", "--intercept", "*"], "--intercept-all"),
        (["proxy", "--forward", "--intercept", "a.test", "--intercept-all"], "leave --intercept out"),
        (
            ["proxy", "--upstream", "https://a.test", "--intercept", "a.test"],
            "those of --upstream https://HOST speak HTTP"
        ),
        (["proxy", "--forward", "--intercept-ca-file", "x.pem"], "--intercept-ca-file needs --intercept HOST"),
        (["proxy", "--forward", "--upstream-ca", "x.pem"], "need --upstream https://HOST or --intercept HOST"),
        (["with", "--insecure", "--", "true"], "need --intercept HOST or --intercept-all"),
        (["with", "--intercept", "a b", "--", "true"], "--intercept: \"a b\""),
        (
            ["with", "--intercept", "a.test", "--upstream-ca", "/nowhere", "--", "true"],
            "--upstream-ca '/nowhere': no such file"
        ),
    ]) func wrongArgumentsHaveAReason(_ arguments: [String], _ reason: String) async throws {
        let result = try await Command.run(arguments)
        #expect(result.status == 64 && result.errors.contains(reason), "\(result.errors)")
    }

    @Test func aProxyNeedsAnAuthorityThatMayCertifyItsHosts() throws {
        let none = try run("exec \"$0\" proxy --forward --intercept api.test")
        #expect(none.status == 69 && none.errors.contains("run 'slowlane ca create', or give --intercept-ca-file"))
        let other = try run(
            "\"$0\" ca create --for other.test >/dev/null; exec \"$0\" proxy --forward --intercept api.test")
        #expect(other.status == 69 && other.errors.contains("may certify only other.test"), "\(other.errors)")
        let all = try run("exec \"$0\" proxy --forward --intercept-all")
        #expect(all.status == 69 && all.errors.contains("not all of: all hosts"), "\(all.errors)")
        let own = try run("echo quit | \"$0\" proxy --forward --intercept other.test")
        #expect(
            own.status == 0
                && own.output.contains("intercepting TLS of other.test; clients must trust \(authority)/ca.pem"))
    }

    @Test func aProxyWritesTheCertificateOfItsOwnAuthority() throws {
        let path = folder.path("own.pem")
        let result = try run(
            "umask 077; echo quit | \"$0\" proxy --forward --intercept 'api.test,*.cdn.test' --intercept-ca-file \"$1\"",
            path)
        #expect(result.status == 0, "\(result.errors)")
        #expect(
            result.output.contains(
                "intercepting TLS of api.test, *.cdn.test; clients must trust \(path) (Slowlane CA "),
            "\(result.output)")
        #expect(try mode(path) == 0o644)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.hasPrefix("-----BEGIN CERTIFICATE-----") && !text.contains("PRIVATE"))
        #expect(!FileManager.default.fileExists(atPath: authority))
    }

    // MARK: slowlane with

    private static let names = [
        "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
        "PERL_LWP_SSL_CA_FILE", "PIP_CERT", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "NODE_EXTRA_CA_CERTS",
    ]

    @Test(arguments: ["env", "auto"]) func aCommandTrustsTheAuthorityOfItsRun(_ mode: String) throws {
        let own = folder.path("own.pem")
        let made = try run(
            """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj /CN=own -out "$1"
            """, own)
        #expect(made.status == 0, "\(made.errors)")
        let printing = Self.names.map { "echo \($0)=$\($0) $(grep -c BEGIN \"$\($0)\")" }.joined(separator: "; ")
        let result = try run(
            """
            mkdir -p "$1"
            unset \(Self.names.joined(separator: " "))
            export TMPDIR="$1" PIP_CERT="$2" NODE_EXTRA_CA_CERTS="$2" AWS_CA_BUNDLE=/nowhere JAVA_TOOL_OPTIONS=-Xmx64m
            exec "$0" with --mode \(mode) --intercept api.test -- \
                sh -c '\(printing); echo "$JAVA_TOOL_OPTIONS"; ls -ld "$TMPDIR"/*'
            """, folder.path("tmp"), own)
        #expect(result.status == 0, "\(result.errors)")
        let lines = result.output.split(separator: "\n")
        let system = try run("grep -c BEGIN /etc/ssl/certs/ca-certificates.crt || echo 0").output
        let count = try #require(Int(system.trimmingCharacters(in: .newlines)))
        for (line, name) in zip(lines, Self.names) {
            let expected = name == "PIP_CERT" || name == "NODE_EXTRA_CA_CERTS" ? 2 : count + 1
            #expect(
                line.hasPrefix("\(name)=\(folder.path("tmp"))/slowlane-trust-") && line.hasSuffix(" \(expected)"),
                "\(line)")
        }
        let java = lines[Self.names.count]
        #expect(java.hasPrefix("-Xmx64m -D") || java.hasPrefix("-Xmx64m "), "\(java)")
        #expect(java.contains("-Djavax.net.ssl.trustStore=\(folder.path("tmp"))/slowlane-trust-"), "\(java)")
        #expect(lines.last?.hasPrefix("drwx------") == true, "\(result.output)")
        #expect(result.errors.contains("note: intercepting TLS of api.test; apps that pin"), "\(result.errors)")
        #expect(result.errors.contains("note: AWS_CA_BUNDLE=/nowhere cannot be read"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("tmp")).isEmpty)
    }

    @Test(arguments: ["TERM", "INT"]) func theCertificatesAreRemovedAfterASignal(_ signal: String) throws {
        let result = try run(
            """
            mkdir -p "$1"; export TMPDIR="$1"
            "$0" with --quiet --intercept api.test -- sh -c 'ls "$TMPDIR" >&2; exec sleep 4' &
            until ls "$1"/* >/dev/null 2>&1; do sleep 0.05; done; sleep 0.5
            kill -\(signal) $!; wait $!; echo $?; ls "$1"
            """, folder.path("tmp"))
        let status = signal == "TERM" ? "143\n" : "130\n"
        #expect(
            result.output == status || signal == "INT" && result.output == "0\n", "\(result.output)\(result.errors)")
        #expect(result.errors.hasPrefix("slowlane-trust-"), "\(result.errors)")
    }

    @Test func chromiumGetsAnExceptionForTheAuthority() throws {
        let path = folder.path("chromium")
        try Data("#!/bin/sh\nprintf '%s\\n' \"$@\"\n".utf8).write(to: URL(filePath: path))
        let result = try run(
            "chmod +x \"$1\"; \"$0\" with --quiet --intercept api.test -- \"$1\" https://api.test/", path)
        let lines = result.output.split(separator: "\n")
        #expect(
            lines.contains { $0.firstMatch(of: /^--ignore-certificate-errors-spki-list=[A-Za-z0-9+\/]{43}=$/) != nil })
        #expect(lines.contains { $0.hasPrefix("--user-data-dir=") } && lines.last == "https://api.test/", "\(lines)")
        let own = try run("\"$0\" with --quiet --intercept api.test -- \"$1\" --user-data-dir=/x", path)
        #expect(own.output.split(separator: "\n").count { $0.hasPrefix("--user-data-dir") } == 1, "\(own.output)")
    }
}
