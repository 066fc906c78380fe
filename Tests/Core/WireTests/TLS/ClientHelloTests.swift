import NIOCore
import TestSupport
import Testing
import Wire

/// The first message of clients of TLS.
@Suite struct ClientHelloTests {
    /// A ClientHello of OpenSSL 3, for API.example.com with the protocols h2 and http/1.1.
    private static let openSSL = bytes(
        "1603010200010001fc0303b93836b423c6777e7f455913bacf672d3276f1d1109c5e634442afd4d15c2b3020ef2d1c2d54ad19372e130a"
            + "8dcacbb5c41bdbf8936d2863a4054d6e690eb468a90024130213031301c02cc030c02bc02fcca9cca8c024c028c023c027009f009e006b"
            + "006700ff0100018f00000014001200000f4150492e6578616d706c652e636f6d000b000403000102000a00160014001d0017001e001900"
            + "1801000101010201030104002300000010000e000c02683208687474702f312e310016000000170000000d002a00280403050306030807"
            + "08080809080a080b080408050806040105010601030303010302040205020602002b00050403040303002d00020101003300260024001d"
            + "0020b2bfda40e929b09ddf24984d25684eda136b94a5ac20ce0f058d115773cb4066001500cc0000000000000000000000000000000000"
            + "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
            + "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
            + "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
            + "00000000000000000000000000000000000000000000")

    private static func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex.utf8.map { $0 < 58 ? $0 - 48 : $0 - 87 })
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    private static func vector8(_ bytes: [UInt8]) -> [UInt8] { [UInt8(bytes.count)] + bytes }

    private static func vector16(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes
    }

    private static func ext(_ type: Int, _ data: [UInt8]) -> [UInt8] {
        [UInt8(type >> 8), UInt8(type & 255)] + vector16(data)
    }

    private static func name(_ text: String) -> [UInt8] { ext(0, vector16([0] + vector16(Array(text.utf8)))) }

    /// Returns the body of a ClientHello with extensions; without any if they are `nil`.
    private static func body(_ extensions: [[UInt8]]?) -> [UInt8] {
        let start =
            [3, 3] + [UInt8](repeating: 7, count: 32) + vector8([]) + vector16([0x0A, 0x0A, 0x13, 1]) + vector8([0])
        return start + (extensions.map { vector16($0.flatMap { $0 }) } ?? [])
    }

    /// Returns the records of a message, with payloads of `size` bytes.
    private static func records(_ body: [UInt8], size: Int = 16_384) -> [UInt8] {
        let message = [1, 0] + vector16(body)
        return stride(from: 0, to: message.count, by: size).flatMap { start in
            [22, 3, 1] + vector16(Array(message[start..<min(start + size, message.count)]))
        }
    }

    private static func read(_ pieces: [[UInt8]]) -> ClientHelloReader.State {
        var reader = ClientHelloReader()
        for piece in pieces { reader.received(ByteBuffer(bytes: piece)) }
        return reader.state
    }

    private static func hello(_ bytes: [UInt8]) -> ClientHello? {
        guard case .hello(let hello, let end) = read([bytes]) else { return nil }
        #expect(end == bytes.count)
        return hello
    }

    @Test func theHelloOfOpenSSLHasNameProtocolsAndVersion() throws {
        let hello = try #require(Self.hello(Self.openSSL))
        #expect(hello.serverName == "api.example.com")
        #expect(hello.protocols == ["h2", "http/1.1"])
        #expect(hello.version == 0x0304 && !hello.hasEncryptedHello)
    }

    @Test func aHelloWithoutExtensionsHasTheOldVersion() throws {
        let hello = try #require(Self.hello(Self.records(Self.body(nil))))
        #expect(hello.serverName == nil && hello.protocols.isEmpty && hello.version == 0x0303)
    }

    @Test func reservedValuesAreLeftOut() throws {
        let grease = Self.ext(0x1A1A, [0])
        let protocols = Self.ext(16, Self.vector16(Self.vector8([0x0A, 0x0A]) + Self.vector8(Array("h2".utf8))))
        let versions = Self.ext(43, Self.vector8([0x7A, 0x7A, 3, 4, 3, 3]))
        let encrypted = Self.ext(0xFE0D, [0, 0, 1, 0, 1, 5])
        let hello = try #require(
            Self.hello(Self.records(Self.body([grease, Self.name("a.test"), protocols, versions, encrypted]))))
        #expect(hello.protocols == ["h2"] && hello.version == 0x0304)
        #expect(hello.hasEncryptedHello && hello.serverName == "a.test")
    }

    /// Bytes that are not the beginning of a ClientHello.
    private static let malformed: [[UInt8]] = {
        let heads: [[UInt8]] = [
            [22, 2], [21], [23, 3, 1], [22, 3, 1, 0, 0], [22, 3, 1, 0x40, 1], [22, 3, 1, 0, 4, 2, 0, 0, 0],
            [22, 3, 1, 0, 4, 1, 0, 0, 0], [22, 3, 1, 0, 4, 1, 0, 0x80, 1],
        ]
        let extensions: [[UInt8]] = [
            name(""), name("a b"), name(String(repeating: "a", count: 256)), ext(0, vector16([0, 0, 9, 1])),
            ext(0, [0, 1]),
            ext(16, [0, 1, 5]), ext(16, vector16([0])), ext(43, [3, 3, 4, 3]), [0, 0, 0, 9],
        ]
        let bodies: [[UInt8]] = extensions.map { body([$0]) } + [body(nil) + [0], body(nil).dropLast(1), []]
        return heads + bodies.map { records($0) }
    }()

    @Test func malformedBytesAreNotTLS() {
        for bytes in Self.malformed { #expect(Self.read([bytes]) == .notTLS, "\(bytes)") }
        #expect(Self.read([Array("GET / HTTP/1.1\r\n\r\n".utf8)]) == .notTLS)
    }

    @Test func anotherProtocolIsKnownByItsFirstByte() {
        #expect(Self.read([[UInt8(ascii: "G")]]) == .notTLS)
        #expect(Self.read([[22]]) == .incomplete)
    }

    @Test func aHelloInPiecesAndRecordsIsTheSame() throws {
        // As large as that of a browser with a key of post-quantum cryptography.
        let body = Self.body([Self.name("browser.test"), Self.ext(51, [UInt8](repeating: 9, count: 1_900))])
        for size in [40, 100, 1_400, 16_384] {
            let bytes = Self.records(body, size: size)
            for piece in [1, 7, 1_448] {
                let pieces = stride(from: 0, to: bytes.count, by: piece).map {
                    Array(bytes[$0..<min($0 + piece, bytes.count)])
                }
                guard case .hello(let hello, Int64(bytes.count)) = Self.read(pieces) else {
                    Issue.record("records of \(size) in pieces of \(piece)")
                    continue
                }
                #expect(hello.serverName == "browser.test")
            }
        }
    }

    @Test func recordsHaveALimit() {
        let body = Self.body([Self.ext(51, [UInt8](repeating: 9, count: 200))])
        #expect(Self.read([Self.records(body, size: 1)]) == .notTLS)
        #expect(Self.read([Self.records(Self.body([Self.ext(51, [UInt8](repeating: 9, count: 33_000))]))]) == .notTLS)
    }

    @Test func bytesAfterTheHelloAreIgnored() {
        var reader = ClientHelloReader()
        reader.received(ByteBuffer(bytes: Self.openSSL + [1, 2, 3]))
        let state = reader.state
        reader.received(ByteBuffer(bytes: [22, 3, 1, 0, 0]))
        #expect(reader.state == state && reader.bytesKept == 0)
        guard case .hello(_, Int64(Self.openSSL.count)) = state else { return _ = Issue.record("\(state)") }
    }

    @Test func changedBytesNeverTrap() {
        let whole = Self.records(
            Self.body([Self.name("a.test"), Self.ext(16, Self.vector16(Self.vector8([1, 2])))]), size: 50)
        for seed in randomSeeds(2_000, soak: 200_000) {
            var random = SeededGenerator(seed: seed)
            var bytes = Bool.random(using: &random) ? whole : Self.openSSL
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let cut = Int.random(in: 0...bytes.count, using: &random)
            // The split changes nothing.
            #expect(Self.read([bytes]) == Self.read([Array(bytes[..<cut]), Array(bytes[cut...])]), "seed \(seed)")
        }
    }
}
