#if TLS
internal import Crypto
internal import SwiftASN1

/// A key store of Java.
extension CertificateAuthority {
    /// The password of the store, which protects nothing: certificates are public. It is Java's default.
    private static let storePassword = "changeit"
    /// The maximum number of certificates in the store.
    private static let storeEntriesMax = 10_000

    /// Returns a key store of Java (JKS) with the root and other certificates.
    ///
    /// - Parameter others: Certificates in PEM form; text that is none is left out.
    public func javaKeyStore(with others: String = "") -> [UInt8] {
        let documents = (try? PEMDocument.parseMultiple(pemString: others)) ?? []
        var certificates = documents.filter { $0.discriminator == "CERTIFICATE" }.map(\.derBytes)
        certificates = [certificateBytes] + certificates.prefix(Self.storeEntriesMax - 1)
        var store: [UInt8] = []
        func append(_ number: UInt64, bytes: Int) {
            for index in (0..<bytes).reversed() { store.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * index))) }
        }
        func append(_ text: String) {
            append(UInt64(text.utf8.count), bytes: 2)
            store += text.utf8
        }
        append(0xFEED_FEED, bytes: 4)
        append(2, bytes: 4)
        append(UInt64(certificates.count), bytes: 4)
        for (index, certificate) in certificates.enumerated() {
            // A trusted certificate, its alias, and the time of its entry.
            append(2, bytes: 4)
            append(index == 0 ? "slowlane" : "authority-\(index)")
            append(UInt64(max(0, validity.lowerBound)) * 1000, bytes: 8)
            append("X.509")
            append(UInt64(certificate.count), bytes: 4)
            store += certificate
        }
        let password = Self.storePassword.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        store += Insecure.SHA1.hash(data: password + Array("Mighty Aphrodite".utf8) + store)
        return store
    }
}
#endif
