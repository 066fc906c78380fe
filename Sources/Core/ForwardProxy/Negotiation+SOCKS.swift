internal import NIOCore

/// SOCKS 4 and 4a (the memoranda of Ying-Da Lee), SOCKS 5 (RFC 1928) with user and password (RFC 1929). Only CONNECT, and
/// UDP ASSOCIATE of SOCKS 5.
extension Negotiation {
    private static let (connect, associate): (UInt8, UInt8) = (1, 3)
    /// The most bytes of a user identifier of SOCKS 4.
    private static let userBytesMax = 255

    // MARK: SOCKS 4

    static let socks4Granted: UInt8 = 90
    static let socks4Rejected: UInt8 = 91

    static func socks4Reply(_ code: UInt8) -> ByteBuffer { ByteBuffer(bytes: [0, code, 0, 0, 0, 0, 0, 0]) }

    /// Reads `4, command, port (2), address (4), user, 0`; if the address is 0.0.0.x with x > 0 (4a), also `name, 0`.
    mutating func nextOfSOCKS4() -> Step? {
        let view = bytes.readableBytesView
        guard view.count >= 9 else { return nil }
        let fixed = Array(view.prefix(8))
        let rejection = Self.socks4Reply(Self.socks4Rejected)
        let port = Int(fixed[2]) << 8 | Int(fixed[3])
        // The protocol has no password.
        guard fixed[1] == Self.connect, port > 0, settings.credentials == nil else { return refuse(rejection) }
        let user = view.dropFirst(8).prefix(Self.userBytesMax + 1).prefix { $0 != 0 }
        guard user.count <= Self.userBytesMax else { return refuse(rejection) }
        var length = 8 + user.count + 1
        guard view.count >= length else { return nil }
        let address = Array(fixed[4...])
        var destination = IPAddress(bytes: address).map { Destination(host: $0.description, port: port) }
        if address.prefix(3) == [0, 0, 0], address[3] > 0 {
            // One byte more than a name, for the dot at its end.
            let nameBytesMax = HostSyntax.nameBytesMax + 1
            let name = view.dropFirst(length).prefix(nameBytesMax + 1).prefix { $0 != 0 }
            guard name.count <= nameBytesMax else { return refuse(rejection) }
            length += name.count + 1
            guard view.count >= length else { return nil }
            destination = (try? HostSyntax.host(name)).map { Destination(host: $0, port: port) }
        }
        guard let destination else { return refuse(rejection) }
        bytes.moveReaderIndex(forwardBy: length)
        return open(.socks4(destination), destination)
    }

    // MARK: SOCKS 5

    private static let withoutCredentials: UInt8 = 0
    private static let withCredentials: UInt8 = 2

    /// Reads `5, number, methods`. Without credentials in the settings, a client that offers only a user and a password
    /// may send any.
    mutating func nextMethods() -> Step? {
        guard let count = byte(1), bytes.readableBytes >= 2 + Int(count), bytes.readInteger(as: UInt16.self) != nil,
            let methods = bytes.readBytes(length: Int(count))
        else { return nil }
        let usable = (settings.credentials == nil ? [Self.withoutCredentials] : []) + [Self.withCredentials]
        guard let method = usable.first(where: methods.contains) else { return refuse(ByteBuffer(bytes: [5, 0xFF])) }
        state = method == Self.withCredentials ? .socks5Credentials : .socks5Request
        return .reply(ByteBuffer(bytes: [5, method]))
    }

    /// Reads `1, length, user, length, password`.
    mutating func nextCredentials() -> Step? {
        guard let version = byte(0) else { return nil }
        guard version == 1 else { return refuse(ByteBuffer(bytes: [1, 1])) }
        guard let userLength = byte(1), let passwordLength = byte(2 + Int(userLength)) else { return nil }
        let end = 3 + Int(userLength) + Int(passwordLength)
        guard let message = bytes.getBytes(at: bytes.readerIndex, length: end) else { return nil }
        bytes.moveReaderIndex(forwardBy: end)
        let user = Array(message[2..<(2 + Int(userLength))])
        let password = Array(message[(3 + Int(userLength))...])
        guard settings.credentials?.matches(user: user, password: password) != false else {
            return refuse(ByteBuffer(bytes: [1, 1]))
        }
        state = .socks5Request
        return .reply(ByteBuffer(bytes: [1, 0]))
    }

    private static let (generalFailure, hostUnreachable): (UInt8, UInt8) = (1, 4)
    private static let (commandNotSupported, addressTypeNotSupported): (UInt8, UInt8) = (7, 8)

    /// Returns a reply. The bound address of a connection is not known while it is a model, and clients do not use it.
    static func socks5Reply(_ code: UInt8, address: IPAddress? = nil, port: Int = 0) -> ByteBuffer {
        ByteBuffer(bytes: [5, code, 0] + SOCKSDatagram.endpoint(address, port))
    }

    /// Reads `5, command, 0, type, address, port (2)`; the address is 4 bytes (1), a length and a name (3), or 16 bytes
    /// (4).
    mutating func nextOfSOCKS5() -> Step? {
        guard let version = byte(0), let command = byte(1), let type = byte(3) else { return nil }
        guard version == 5 else { return refuse(Self.socks5Reply(Self.generalFailure)) }
        let isAssociation = command == Self.associate && settings.associates
        guard command == Self.connect || isAssociation else {
            return refuse(Self.socks5Reply(Self.commandNotSupported))
        }
        let address: Range<Int>
        switch type {
        case 1: address = 4..<8
        case 3:
            guard let length = byte(4) else { return nil }
            address = 5..<(5 + Int(length))
        case 4: address = 4..<20
        default: return refuse(Self.socks5Reply(Self.addressTypeNotSupported))
        }
        let end = address.upperBound + 2
        guard let message = bytes.getBytes(at: bytes.readerIndex, length: end) else { return nil }
        bytes.moveReaderIndex(forwardBy: end)
        let port = Int(message[end - 2]) << 8 | Int(message[end - 1])
        if isAssociation {
            state = .opened(.association)
            return .associate(port: port)
        }
        let text = message[address]
        let host = type == 3 ? try? HostSyntax.host(text) : IPAddress(bytes: Array(text))?.description
        guard let host else { return refuse(Self.socks5Reply(Self.hostUnreachable)) }
        guard port > 0 else { return refuse(Self.socks5Reply(Self.generalFailure)) }
        let destination = Destination(host: host, port: port)
        return open(.socks5(destination), destination)
    }

    /// Returns a byte that is not read yet; `nil` if it has not arrived.
    private func byte(_ index: Int) -> UInt8? { bytes.getInteger(at: bytes.readerIndex + index) }
}
