internal import Foundation

/// A private folder with the certificates that a command must trust while the TLS of its connections is intercepted, and
/// the variables and flags by which programs find them.
///
/// Most variables replace the certificates of a program, so that their files contain these, too. docs/reference/with.md
/// lists the programs.
package struct TrustFolder: Sendable {
    /// The certificates of an authority.
    package struct Authority: Sendable {
        /// The certificate in PEM form.
        package var certificate: String
        /// The digest of the issuer's public key, for Chromium.
        package var keyDigest: String
        /// Returns a key store of Java with the certificate and others, which are in PEM form.
        package var javaKeyStore: @Sendable (_ others: String) -> [UInt8]

        package init(
            certificate: String, keyDigest: String, javaKeyStore: @escaping @Sendable (_ others: String) -> [UInt8]
        ) {
            self.certificate = certificate
            self.keyDigest = keyDigest
            self.javaKeyStore = javaKeyStore
        }
    }

    /// The variables whose file replaces the certificates of a program.
    static let replacingNames = [
        "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
        "PERL_LWP_SSL_CA_FILE", "PIP_CERT", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    ]
    /// The variables whose file adds certificates to those of a program.
    static let addingNames = ["NODE_EXTRA_CA_CERTS"]
    /// The files of the system's certificates: Debian, Fedora, openSUSE, Alpine and macOS.
    package static let systemFiles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
    ]
    /// The option of Java for a trust store.
    private static let javaOption = "-Djavax.net.ssl.trustStore="
    /// The maximum number of bytes of the certificates of a variable.
    private static let bytesMax = 8 << 20

    private let path: String
    private let keyDigest: String
    /// The variables to set.
    package private(set) var variables: [(name: String, value: String)] = []
    /// The options to append to `JAVA_TOOL_OPTIONS`; `nil` if the value has a trust store.
    package private(set) var javaOptions: String?
    /// What the command cannot be given, in sentences.
    package private(set) var limitations: [String] = []

    /// Creates the folder and its files.
    ///
    /// - Parameters:
    ///   - parent: The folder of temporary files.
    ///   - parent: The folder of temporary files; `nil` for that of this process.
    ///   - environment: The variables; `nil` for those of this process. The certificates of those that are set remain trusted.
    package init(
        _ authority: Authority, in parent: String? = nil, environment: [String: String]? = nil,
        systemFiles: [String] = TrustFolder.systemFiles
    ) throws {
        let parent = parent.map { URL(filePath: $0) } ?? FileManager.default.temporaryDirectory
        let environment = environment ?? ProcessInfo.processInfo.environment
        path = parent.appending(path: "slowlane-trust-\(UUID().uuidString)").path
        keyDigest = authority.keyDigest
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        do {
            try write(authority, environment, systemFiles)
        } catch {
            remove()
            throw error
        }
    }

    private mutating func write(
        _ authority: Authority, _ environment: [String: String], _ systemFiles: [String]
    ) throws {
        let system = systemFiles.lazy.compactMap { Self.certificates(at: $0) }.first
        if system == nil {
            limitations.append("this system has no file of certificates; only servers that are intercepted are trusted")
        }
        let own = try add("authority.pem", authority.certificate)
        let all = try add("bundle.pem", (system ?? "") + authority.certificate)
        for name in Self.replacingNames + Self.addingNames {
            let isAdding = Self.addingNames.contains(name)
            guard let file = environment[name], !file.isEmpty else {
                variables.append((name, isAdding ? own : all))
                continue
            }
            guard let certificates = Self.certificates(at: file) else {
                limitations.append("\(name)=\(file) cannot be read; the certificates of the system are used")
                variables.append((name, isAdding ? own : all))
                continue
            }
            variables.append((name, try add("\(name).pem", certificates + authority.certificate)))
        }
        if environment["JAVA_TOOL_OPTIONS"]?.contains(Self.javaOption) == true {
            limitations.append("JAVA_TOOL_OPTIONS has a trust store, which Java keeps: import the certificate there")
        } else {
            let store = "\(path)/java.jks"
            try Data(authority.javaKeyStore(system ?? "")).write(to: URL(filePath: store))
            let options = Self.javaOption + store
            javaOptions = options.contains(where: \.isWhitespace) ? "\"\(options)\"" : options
        }
    }

    private func add(_ name: String, _ text: String) throws -> String {
        try Data(text.utf8).write(to: URL(filePath: "\(path)/\(name)"))
        return "\(path)/\(name)"
    }

    /// Returns the certificates of a file, or of the files of a folder; `nil` if there are none.
    private static func certificates(at path: String) -> String? {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else { return nil }
        let names = isFolder.boolValue ? (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] : [""]
        var text = ""
        for name in names.sorted() {
            guard let handle = FileHandle(forReadingAtPath: name.isEmpty ? path : "\(path)/\(name)") else { continue }
            defer { try? handle.close() }
            guard let data = try? handle.read(upToCount: bytesMax + 1), text.utf8.count + data.count <= bytesMax else {
                continue
            }
            let part = String(decoding: data, as: UTF8.self)
            // A folder has links from the hashes of names to the files.
            if part.contains("-----BEGIN"), !text.contains(part) { text += part.hasSuffix("\n") ? part : part + "\n" }
        }
        return text.isEmpty ? nil : text
    }

    /// Returns a command with the flags that its program needs: Chromium has a store of its own. The exception for the
    /// authority needs a profile of its own.
    package func command(_ command: [String]) -> [String] {
        guard let program = command.first, ProxyVariables.isChromium(program) else { return command }
        var flags = ["--ignore-certificate-errors-spki-list=\(keyDigest)"]
        if !command.contains(where: { $0.hasPrefix("--user-data-dir") }) {
            flags.append("--user-data-dir=\(path)/chromium")
        }
        return [program] + flags + command.dropFirst()
    }

    /// Removes the folder.
    package func remove() { try? FileManager.default.removeItem(atPath: path) }
}
