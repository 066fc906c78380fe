internal import CommandSupport
internal import Foundation
internal import Proxy
internal import ScenarioRunner

/// An authority as text, with the commands that trust it and those that remove it.
enum AuthorityText {
    /// Returns the properties of an authority, and the commands.
    static func lines(_ authority: CertificateAuthority, _ folder: AuthorityFolder) -> [String] {
        let (start, end) = (authority.validity.lowerBound, authority.validity.upperBound)
        let isExpired = end <= Int64(Date().timeIntervalSince1970)
        return [
            "name         \(authority.name)", "certificate  \(folder.certificatePath)",
            "SHA-256      \(authority.fingerprint)",
            "valid        \(date(start)) to \(date(end))\(isExpired ? " (EXPIRED)" : "")",
            "hosts        \(authority.hosts)", "",
        ] + instructions(authority, folder)
    }

    private static func date(_ time: Int64) -> String {
        Date(timeIntervalSince1970: Double(time)).ISO8601Format()
    }

    /// Returns the commands that trust an authority and those that remove it.
    static func instructions(_ authority: CertificateAuthority, _ folder: AuthorityFolder) -> [String] {
        table(folder.certificatePath, authority.name).flatMap { row in
            ["\(row.system):", "  trust   \(row.trust)", "  remove  \(row.removal)"]
        }
    }

    /// Returns the commands that remove an authority.
    static func removal(_ authority: CertificateAuthority, _ folder: AuthorityFolder) -> [String] {
        ["Remove the certificate where it was trusted:"]
            + table(folder.certificatePath, authority.name).map { "  \($0.system): \($0.removal)" }
    }

    private static func table(_ path: String, _ name: String) -> [(system: String, trust: String, removal: String)] {
        let file = ReplayCommand.quoted(path)
        let name = ReplayCommand.quoted(name)
        let anchors = "/etc/pki/ca-trust/source/anchors/slowlane.pem"
        let debian = "/usr/local/share/ca-certificates/slowlane.crt"
        return [
            (
                "One command", "curl --cacert \(file), SSL_CERT_FILE, NODE_EXTRA_CA_CERTS; 'slowlane with' needs none",
                "nothing to remove"
            ),
            (
                "Debian, Ubuntu", "sudo install -m 644 \(file) \(debian) && sudo update-ca-certificates",
                "sudo rm \(debian) && sudo update-ca-certificates --fresh"
            ),
            (
                "Fedora, RHEL", "sudo install -m 644 \(file) \(anchors) && sudo update-ca-trust",
                "sudo rm \(anchors) && sudo update-ca-trust"
            ),
            (
                "macOS", "security add-trusted-cert -r trustRoot -k ~/Library/Keychains/login.keychain-db \(file)",
                "security delete-certificate -t -c \(name)"
            ),
            ("Windows", "certutil -user -addstore Root \(file)", "certutil -user -delstore Root \(name)"),
            (
                "Chromium on Linux", "certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n \(name) -i \(file)",
                "certutil -d sql:$HOME/.pki/nssdb -D -n \(name)"
            ),
            (
                "Firefox", "certutil -d sql:PROFILE -A -t C,, -n \(name) -i \(file), with the folder of about:profiles",
                "certutil -d sql:PROFILE -D -n \(name)"
            ),
            (
                "Java", "keytool -importcert -cacerts -noprompt -storepass changeit -alias slowlane -file \(file)",
                "keytool -delete -cacerts -storepass changeit -alias slowlane"
            ),
            (
                "Android",
                "adb push \(file) /sdcard/Download/slowlane.crt, then Settings, Install a certificate, CA certificate; "
                    + "apps trust it only if their network security configuration says so",
                "Settings, Trusted credentials, User"
            ),
            (
                "iOS simulator", "xcrun simctl keychain booted add-root-cert \(file)",
                "xcrun simctl keychain booted reset"
            ),
            (
                "iOS",
                "open the file on the device, then Settings, General, VPN & Device Management, Install, and General, "
                    + "About, Certificate Trust Settings",
                "Settings, General, VPN & Device Management, Remove Profile"
            ),
        ]
    }
}
