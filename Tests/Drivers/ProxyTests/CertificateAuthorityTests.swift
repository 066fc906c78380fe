import ForwardProxy
import Foundation
import NIOSSL
import TestSupport
import Testing

@testable import Proxy

/// The certificates of intercepted hosts, which other programs must accept: OpenSSL, and Go and Java if they are there.
@Suite(.tags(.gateways), .timeLimit(.minutes(5))) struct CertificateAuthorityTests {
    private static let now = Int64(Date().timeIntervalSince1970)

    private func authority(_ hosts: String...) throws -> CertificateAuthority {
        try CertificateAuthority(for: hosts.isEmpty ? .all : InterceptedHosts(parsing: hosts), now: Self.now)
    }

    private static func bytes(_ identity: InterceptionIdentity) throws -> [[UInt8]] {
        try identity.chain.map {
            guard case .certificate(let certificate) = $0 else { return [] }
            return try certificate.toDERBytes()
        }
    }

    private static func pem(_ bytes: [UInt8]) -> String {
        "-----BEGIN CERTIFICATE-----\n\(Data(bytes).base64EncodedString(options: .lineLength64Characters))\n"
            + "-----END CERTIFICATE-----\n"
    }

    /// Makes a certificate of an upstream with OpenSSL.
    private static func upstream(_ names: String, bytes: Int = 0) throws -> [NIOSSLCertificate] {
        let comment = bytes > 0 ? ["-addext", "nsComment=" + String(repeating: "x", count: bytes)] : []
        let (status, output, errors) = try runProgram(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                "/dev/null",
                "-subj", "/CN=upstream", "-days", "2", "-addext", "subjectAltName=\(names)",
            ] + comment)
        #expect(status == 0, "\(errors)")
        return try NIOSSLCertificate.fromPEMBytes(Array(output.utf8))
    }

    /// Files of a chain for other programs.
    private struct Files {
        let folder: TemporaryFolder
        let (root, issuer, leaf): (String, String, String)

        init(_ authority: CertificateAuthority, _ identity: InterceptionIdentity) throws {
            folder = try TemporaryFolder()
            (root, issuer, leaf) = (folder.path("root.pem"), folder.path("issuer.pem"), folder.path("leaf.pem"))
            let chain = try bytes(identity)
            for (path, text) in [(root, authority.certificatePEM), (issuer, pem(chain[1])), (leaf, pem(chain[0]))] {
                try Data(text.utf8).write(to: URL(filePath: path))
            }
        }

        /// Returns what OpenSSL says about the chain.
        func verify(_ name: String) throws -> String {
            let option = name.contains(where: \.isLetter) && !name.contains(":") ? "-verify_hostname" : "-verify_ip"
            let result = try runProgram(
                "openssl",
                [
                    "verify", "-x509_strict", "-purpose", "sslserver", option, name, "-CAfile", root, "-untrusted",
                    issuer, leaf,
                ]
            )
            return result.status == 0 ? "OK" : result.output + result.errors
        }

        /// Returns the text of the certificate of the host.
        func text(_ options: String...) throws -> String {
            try runProgram("openssl", ["x509", "-in", leaf, "-noout"] + options).output
        }
    }

    @Test(arguments: [
        ("api.test", "api.test"), ("a.cdn.test", "api.test,*.cdn.test"), ("127.0.0.1", "127.0.0.0/8"), ("::1", "::1"),
        ("any.test", ""), ("10.0.0.1", ""), (String(repeating: "a.", count: 40) + "test", "*.test"),
    ]) func openSSLAcceptsAStrictChain(_ name: String, _ hosts: String) throws {
        let authority = try hosts.isEmpty ? self.authority() : self.authority(hosts)
        let files = try Files(authority, authority.identity(for: name, upstream: []))
        #expect(try files.verify(name) == "OK")
        #expect(try files.verify(name.contains(where: \.isLetter) ? "other.test" : "10.9.9.9") != "OK")
    }

    /// The issuer's key alone is no danger for other hosts: OpenSSL refuses what it signs.
    @Test(arguments: ["DNS:evil.test", "DNS:api.test,DNS:evil.test", "IP:10.0.0.1", "DNS:xapi.test"])
    func namesOutsideTheConstraintsAreRefused(_ names: String) throws {
        let authority = try authority("api.test")
        let files = try Files(authority, authority.identity(for: "api.test", upstream: []))
        let key = files.folder.path("issuer.key")
        try Data(authority.keyPEM.utf8).write(to: URL(filePath: key))
        let script = """
            set -e
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout e.key -out e.csr -subj /CN=e
            printf 'subjectAltName=%s\\nbasicConstraints=critical,CA:FALSE\\nkeyUsage=critical,digitalSignature\\n' \(names) > e.ext
            printf 'subjectKeyIdentifier=hash\\nauthorityKeyIdentifier=keyid\\nextendedKeyUsage=serverAuth\\n' >> e.ext
            openssl x509 -req -in e.csr -CA issuer.pem -CAkey issuer.key -CAcreateserial -days 1 -extfile e.ext -out leaf.pem
            """
        let (status, output, _) = try runProgram(
            "/bin/sh", ["-c", script], in: files.folder.url.path, standardError: .withOutput)
        #expect(status == 0, "\(output)")
        let name = names.split(separator: ":").last.map(String.init) ?? ""
        let verdict = try files.verify(name)
        #expect(
            verdict.contains("permitted subtree violation") || verdict.contains("excluded subtree violation"),
            "\(verdict)")
    }

    @Test func theRootIsStrictAndItsKeyIsGone() throws {
        let authority = try authority("api.test")
        let folder = try TemporaryFolder()
        try Data((authority.issuerPEM).utf8).write(to: URL(filePath: folder.path("i.pem")))
        try Data((authority.certificatePEM).utf8).write(to: URL(filePath: folder.path("r.pem")))
        let text = try ["i", "r"].map { name in
            try runProgram("openssl", ["x509", "-in", folder.path("\(name).pem"), "-noout", "-text"]).output
        }
        #expect(text[0].contains("CA:TRUE, pathlen:0") && text[1].contains("CA:TRUE, pathlen:1"))
        #expect(text[0].contains("Name Constraints: critical") && text[0].contains("DNS:api.test"))
        #expect(text[0].contains("IP:0.0.0.0/0.0.0.0"))
        // Nothing that the authority keeps is the key of the root.
        let key = try runProgram("openssl", ["pkey", "-pubout"], input: authority.keyPEM).output
        let keys = try ["i", "r"].map { name in
            try runProgram("openssl", ["x509", "-in", folder.path("\(name).pem"), "-noout", "-pubkey"]).output
        }
        #expect(key == keys[0] && key != keys[1])
        let identifiers = text.map { $0.split(separator: "Subject Key Identifier:")[1].split(separator: "\n")[1] }
        #expect(identifiers[0].contains(":") && identifiers[0] != identifiers[1])
    }

    @Test func theNamesOfTheUpstreamAreCopiedIfTheyMayBeCertified() throws {
        let authority = try authority("api.test,*.cdn.test,127.0.0.1")
        func names(_ host: String, _ upstream: String) throws -> String {
            let identity = try authority.identity(for: host, upstream: Self.upstream(upstream))
            let lines = try Files(authority, identity).text("-ext", "subjectAltName").split(separator: "\n")
            return lines.last?.trimmingCharacters(in: .whitespaces) ?? ""
        }
        #expect(
            try names("a.cdn.test", "DNS:*.cdn.test,DNS:evil.test,DNS:api.test,email:a@b.test,IP:10.0.0.1,IP:127.0.0.1")
                == "DNS:*.cdn.test, DNS:api.test, IP Address:127.0.0.1")
        #expect(try names("api.test", "DNS:other.test") == "DNS:api.test")
        #expect(try names("api.test", "DNS:*.test") == "DNS:api.test")
        #expect(try names("127.0.0.1", "IP:127.0.0.1,DNS:api.test") == "IP Address:127.0.0.1, DNS:api.test")
        #expect(try names("127.0.0.1", "DNS:api.test") == "IP Address:127.0.0.1")
    }

    @Test func aCertificateOfAHostIsShort() throws {
        let authority = try authority("*.test")
        let text = try Files(authority, authority.identity(for: "a.test", upstream: [])).text("-text")
        #expect(text.contains("Subject: CN = a.test") || text.contains("Subject: CN=a.test"))
        #expect(text.contains("TLS Web Server Authentication") && text.contains("CA:FALSE"))
        let long = String(repeating: "abcdefg.", count: 8) + "test"
        let other = try Files(authority, authority.identity(for: long, upstream: [])).text("-text")
        #expect(other.contains("Subject: CN = host") || other.contains("Subject: CN=host"))
        #expect(other.contains("DNS:\(long)"))
    }

    @Test(arguments: [1200, 2000, 3000, 4097, 8000, 20_000])
    func theChainHasTheSizeOfTheUpstreams(_ size: Int) throws {
        let authority = try authority("*.test")
        let upstream = try Self.upstream("DNS:a.test", bytes: size - 400)
        let bytes = try upstream.reduce(0) { try $0 + $1.toDERBytes().count }
        let identity = try authority.identity(for: "a.test", upstream: upstream)
        let own = try Self.bytes(identity).reduce(0) { $0 + $1.count }
        #expect(own == identity.chainBytes)
        let smallest = try authority.identity(for: "a.test", upstream: []).chainBytes
        let expected = min(max(bytes, smallest), smallest + CertificateAuthority.paddingBytesMax)
        // The extension has up to 18 bytes beside the padding, and the DER of a signature of P-256 differs by some bytes.
        #expect(abs(own - expected) <= 18 + 8, "\(own) bytes for \(bytes)")
        if size < 10_000 { #expect(abs(own - bytes) <= 4, "\(own) bytes for \(bytes)") }
        #expect(try Files(authority, identity).verify("a.test") == "OK")
    }

    @Test func anIdentityIsKeptUntilItIsOldAndTheOldestGoesFirst() throws {
        let authority = try authority("*.test")
        let first = try authority.identity(for: "a.test", upstream: [], now: Self.now)
        #expect(try authority.identity(for: "A.TEST.", upstream: [], now: Self.now) == first)
        let other = try Self.upstream("DNS:a.test")
        #expect(try authority.identity(for: "a.test", upstream: other, now: Self.now) != first)
        for index in 0..<CertificateAuthority.identitiesMax - 2 {
            _ = try authority.identity(for: "h\(index).test", upstream: [], now: Self.now)
        }
        #expect(try authority.identity(for: "a.test", upstream: [], now: Self.now) == first)
        _ = try authority.identity(for: "one-more.test", upstream: [], now: Self.now)
        #expect(try authority.identity(for: "a.test", upstream: [], now: Self.now) != first)
    }

    @Test func validitiesEndWithTheIssuer() throws {
        let authority = try CertificateAuthority(for: .all, now: Self.now, days: 10)
        let day: Int64 = 86400
        let first = try authority.identity(for: "a.test", upstream: [], now: Self.now)
        #expect(first.end == Self.now + 7 * day)
        #expect(try authority.identity(for: "a.test", upstream: [], now: Self.now + 5 * day) == first)
        let renewed = try authority.identity(for: "a.test", upstream: [], now: Self.now + 6 * day + 1)
        #expect(renewed != first && renewed.end == authority.validity.upperBound)
        #expect(try authority.identity(for: "a.test", upstream: [], now: Self.now + 10 * day - 1) == renewed)
        #expect(throws: CertificateAuthorityError.self) {
            try authority.identity(for: "a.test", upstream: [], now: Self.now + 10 * day)
        }
        let longest = try CertificateAuthority(for: .all, now: Self.now, days: 1000)
        #expect(longest.validity.upperBound == Self.now + 90 * day)
    }

    @Test(arguments: [
        "", ".", "evil.test", "api.test\0.evil.test", "api.test\n", "api.test,DNS:evil.test", "*.api.test", "*",
        "10.0.0.1",
        "a\u{301}pi.test", String(repeating: "a", count: 300), String(repeating: "a.", count: 200) + "api.test",
    ]) func aHostileNameGetsNoCertificate(_ name: String) throws {
        let authority = try authority("api.test")
        #expect(throws: CertificateAuthorityError.self) { try authority.identity(for: name, upstream: []) }
    }

    @Test func aConnectionWithoutANameGetsThoseOfTheUpstream() throws {
        let authority = try authority("api.test")
        let identity = try authority.identity(for: nil, upstream: Self.upstream("DNS:api.test,DNS:evil.test"))
        #expect(try Files(authority, identity).verify("api.test") == "OK")
        #expect(throws: CertificateAuthorityError.self) {
            try authority.identity(for: nil, upstream: Self.upstream("DNS:evil.test"))
        }
    }

    /// Certificates of upstreams come from other machines; the names in them are copied only if they may be certified.
    @Test func mutatedCertificatesOfUpstreamsTrapNothing() throws {
        let authority = try authority("api.test,*.cdn.test,127.0.0.1")
        let original = try #require(
            Self.upstream("DNS:api.test,DNS:*.cdn.test,DNS:evil.test,IP:127.0.0.1,email:a@b.test").first
        ).toDERBytes()
        var accepted = 0
        for seed in randomSeeds(2000, soak: 100_000) {
            var generator = SeededGenerator(seed: seed)
            var bytes = original
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                let index = bytes.indices.randomElement(using: &generator)!
                bytes[index] = UInt8.random(in: 0...255, using: &generator)
            }
            guard let upstream = try? NIOSSLCertificate(bytes: bytes, format: .der) else { continue }
            accepted += 1
            let identity = try authority.identity(for: "api.test", upstream: [upstream])
            for name in try NIOSSLCertificate(bytes: Self.bytes(identity)[0], format: .der)._subjectAlternativeNames() {
                let text = String(decoding: Array(name.contents), as: UTF8.self)
                #expect(
                    name.nameType == .ipAddress || authority.hosts.normalized(certificateName: text) == text,
                    "seed \(seed): \(text)")
            }
        }
        #expect(accepted > 50)
    }

    @Test func anAuthorityOfFilesIsTheSame() throws {
        for hosts in [["api.test,*.cdn.test,10.0.0.0/8"], []] {
            let made = try CertificateAuthority(
                for: hosts.isEmpty ? .all : InterceptedHosts(parsing: hosts), now: Self.now)
            let read = try CertificateAuthority(
                certificates: made.certificatePEM + made.issuerPEM, key: made.keyPEM)
            #expect(read.fingerprint == made.fingerprint && read.keyDigest == made.keyDigest && read.name == made.name)
            #expect(read.validity == made.validity && made.hosts.isSubset(of: read.hosts))
            #expect(read.hosts.isAll == hosts.isEmpty && read.hosts.includes("evil.test") == hosts.isEmpty)
            #expect(try Files(made, read.identity(for: "api.test", upstream: [])).verify("api.test") == "OK")
        }
        let (one, two) = (try authority("api.test"), try authority("api.test"))
        for (certificates, key) in [
            (one.certificatePEM + one.issuerPEM, two.keyPEM), (two.certificatePEM + one.issuerPEM, one.keyPEM),
            (one.certificatePEM, one.keyPEM), ("rubbish", one.keyPEM), (one.certificatePEM + one.issuerPEM, "rubbish"),
        ] {
            #expect(throws: CertificateAuthorityError.self) {
                try CertificateAuthority(certificates: certificates, key: key)
            }
        }
    }

    /// Go and Java have verifiers of their own, with rules that OpenSSL does not have.
    @Test func otherVerifiersAcceptAPaddedChain() throws {
        let authority = try authority("api.test,*.cdn.test")
        let identity = try authority.identity(for: "a.cdn.test", upstream: Self.upstream("DNS:*.cdn.test", bytes: 3000))
        let files = try Files(authority, identity)
        if let go = Self.tool("go") {
            try Data(Self.goProgram.utf8).write(to: URL(filePath: files.folder.path("v.go")))
            let script =
                "GOCACHE=$PWD/cache GOFLAGS=-mod=mod GO111MODULE=off \(go) run v.go root.pem issuer.pem leaf.pem a.cdn.test"
            let result = try runProgram(
                "/bin/sh", ["-c", script], in: files.folder.url.path, standardError: .withOutput)
            #expect(result.output == "OK\n", "\(result.output)")
        }
        if let java = Self.tool("java") {
            try Data(authority.javaKeyStore().map { $0 }).write(to: URL(filePath: files.folder.path("t.jks")))
            try Data(Self.javaProgram.utf8).write(to: URL(filePath: files.folder.path("V.java")))
            let result = try runProgram(
                java, ["V.java", "t.jks", "leaf.pem", "issuer.pem"], in: files.folder.url.path,
                standardError: .withOutput)
            #expect(result.output.hasSuffix("OK\n"), "\(result.output)")
        }
    }

    private static func tool(_ name: String) -> String? {
        let path = try? runProgram("/bin/sh", ["-c", "command -v \(name)"]).output
        return path.flatMap { $0.isEmpty ? nil : $0.trimmingCharacters(in: .newlines) }
    }

    private static let goProgram = """
        package main

        import (
        	"crypto/x509"
        	"encoding/pem"
        	"fmt"
        	"os"
        )

        func read(path string) *x509.Certificate {
        	data, _ := os.ReadFile(path)
        	block, _ := pem.Decode(data)
        	certificate, err := x509.ParseCertificate(block.Bytes)
        	if err != nil {
        		fmt.Println(err)
        		os.Exit(1)
        	}
        	return certificate
        }

        func main() {
        	roots, issuers := x509.NewCertPool(), x509.NewCertPool()
        	roots.AddCert(read(os.Args[1]))
        	issuers.AddCert(read(os.Args[2]))
        	_, err := read(os.Args[3]).Verify(x509.VerifyOptions{Roots: roots, Intermediates: issuers, DNSName: os.Args[4]})
        	if err != nil {
        		fmt.Println(err)
        		os.Exit(1)
        	}
        	fmt.Println("OK")
        }

        """

    private static let javaProgram = """
        import java.io.FileInputStream;
        import java.security.KeyStore;
        import java.security.cert.*;
        import javax.net.ssl.*;

        class V {
            public static void main(String[] a) throws Exception {
                KeyStore store = KeyStore.getInstance("JKS");
                store.load(new FileInputStream(a[0]), "changeit".toCharArray());
                TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
                factory.init(store);
                CertificateFactory reader = CertificateFactory.getInstance("X.509");
                X509Certificate[] chain = new X509Certificate[2];
                for (int i = 0; i < 2; i++)
                    chain[i] = (X509Certificate) reader.generateCertificate(new FileInputStream(a[i + 1]));
                ((X509TrustManager) factory.getTrustManagers()[0]).checkServerTrusted(chain, "ECDHE_ECDSA");
                System.out.println("OK");
            }
        }

        """
}
