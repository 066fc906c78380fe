/// The first message of a client of TLS (RFC 8446, 4.1.2): what it tells about the server that it wants.
public struct ClientHello: Hashable, Sendable {
    /// The name of the server (SNI, RFC 6066, 3) in lower case; `nil` without one. With Encrypted Client Hello it is the name
    /// of the outer hello, which is public.
    public var serverName: String?
    /// The application protocols (ALPN, RFC 7301), such as `h2` and `http/1.1`, without reserved ones.
    public var protocols: [String] = []
    /// The highest version that the client offers, such as 0x0304 for TLS 1.3.
    public var version: UInt16 = 0
    /// Whether the client sends an Encrypted Client Hello (RFC 9849), or the imitation of one: the two look the same.
    public var hasEncryptedHello = false

    /// The most bytes of a name.
    public static let serverNameBytesMax = 255
    /// The most application protocols that are kept.
    public static let protocolsMax = 32

    private enum Extension {
        static let serverName: UInt16 = 0
        static let protocols: UInt16 = 16
        static let supportedVersions: UInt16 = 43
        static let encryptedHello: UInt16 = 0xFE0D
    }

    /// Reads the body of a ClientHello. Returns `nil` if it is malformed.
    init?(body: [UInt8]) {
        var reader = ByteReader(body[...])
        guard let legacyVersion = reader.integer16(), reader.skip(32), reader.vector8() != nil,
            let suites = reader.vector16(), suites.count >= 2, suites.count % 2 == 0,
            let compressions = reader.vector8(), !compressions.isEmpty
        else { return nil }
        version = legacyVersion
        // A hello without extensions ends here.
        if reader.isAtEnd { return }
        guard var extensions = reader.vector16().map(ByteReader.init), reader.isAtEnd else { return nil }
        while !extensions.isAtEnd {
            guard let type = extensions.integer16(), let data = extensions.vector16() else { return nil }
            guard read(type, ByteReader(data)) else { return nil }
        }
    }

    /// Reads an extension. Returns whether it is well-formed.
    private mutating func read(_ type: UInt16, _ data: ByteReader) -> Bool {
        var data = data
        switch type {
        case Extension.serverName:
            guard var names = data.vector16().map(ByteReader.init), data.isAtEnd else { return false }
            while !names.isAtEnd {
                guard let kind = names.integer8(), let name = names.vector16() else { return false }
                guard kind == 0, serverName == nil else { continue }
                guard (1...Self.serverNameBytesMax).contains(name.count),
                    name.allSatisfy({ (0x21...0x7E).contains($0) })
                else { return false }
                serverName = String(decoding: name.map { (65...90).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
            }
        case Extension.protocols:
            guard var list = data.vector16().map(ByteReader.init), data.isAtEnd else { return false }
            while !list.isAtEnd {
                guard let name = list.vector8(), !name.isEmpty else { return false }
                // Reserved names (GREASE, RFC 8701) are two equal bytes that are no text.
                guard name.allSatisfy({ (0x21...0x7E).contains($0) }), protocols.count < Self.protocolsMax else {
                    continue
                }
                protocols.append(String(decoding: name, as: UTF8.self))
            }
        case Extension.supportedVersions:
            guard var versions = data.vector8().map(ByteReader.init), data.isAtEnd else { return false }
            var highest: UInt16 = 0
            while !versions.isAtEnd {
                guard let version = versions.integer16() else { return false }
                // Reserved versions (GREASE) are 0x0A0A, 0x1A1A and so on; TLS has 0x03.
                if version >> 8 == 3 { highest = max(highest, version) }
            }
            if highest > 0 { version = highest }
        case Extension.encryptedHello: hasEncryptedHello = true
        default: break
        }
        return true
    }
}

/// A reader of the vectors of TLS (RFC 8446, 3.4). A read beyond the end returns `nil`.
private struct ByteReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skip(_ count: Int) -> Bool {
        guard rest.count >= count else { return false }
        rest = rest.dropFirst(count)
        return true
    }

    mutating func integer8() -> UInt8? { rest.popFirst() }

    mutating func integer16() -> UInt16? {
        guard let high = rest.popFirst(), let low = rest.popFirst() else { return nil }
        return UInt16(high) << 8 | UInt16(low)
    }

    mutating func vector8() -> ArraySlice<UInt8>? { integer8().flatMap { take(Int($0)) } }

    mutating func vector16() -> ArraySlice<UInt8>? { integer16().flatMap { take(Int($0)) } }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}
