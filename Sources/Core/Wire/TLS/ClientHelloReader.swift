public import NIOCore

/// A reader of the first message of a client, which may arrive in pieces of any size and in several records of TLS.
///
/// A state machine without deadlines: the bytes of the client are its input.
public struct ClientHelloReader: Sendable {
    /// What is known.
    public enum State: Hashable, Sendable {
        /// The bytes so far may begin a ClientHello.
        case incomplete
        /// A ClientHello, and the number of bytes up to its end.
        case hello(ClientHello, end: Int64)
        /// The bytes are not the beginning of TLS, or the message is malformed.
        case notTLS
    }

    /// The most bytes of a ClientHello. Those of browsers have about 2 kB.
    public static let helloBytesMax = 32 << 10
    /// The most records of a ClientHello.
    public static let recordsMax = 64

    private static let handshakeRecord: UInt8 = 22
    private static let clientHello: UInt8 = 1
    /// The most bytes of the payload of a record (RFC 8446, 5.1).
    private static let recordBytesMax = 1 << 14
    private static let (recordHeadBytes, messageHeadBytes) = (5, 4)

    /// What is known.
    public private(set) var state = State.incomplete
    /// The head of the record that is being read, and the bytes of its payload that are still to come.
    private var recordHead: [UInt8] = []
    private var recordBytesLeft = 0
    private var recordCount = 0
    private var message: [UInt8] = []
    private var bytesRead: Int64 = 0

    /// Creates a reader of a new stream.
    public init() {}

    /// The number of bytes held.
    public var bytesKept: Int { recordHead.count + message.count }

    /// Reports bytes of the client; after the end of the message they are ignored.
    public mutating func received(_ bytes: ByteBuffer) {
        var rest = bytes.readableBytesView[...]
        while state == .incomplete, !rest.isEmpty {
            if recordBytesLeft == 0 {
                let count = min(rest.count, Self.recordHeadBytes - recordHead.count)
                recordHead += rest.prefix(count)
                rest = rest.dropFirst(count)
                bytesRead += Int64(count)
                checkRecordHead()
            } else {
                let wanted = min(recordBytesLeft, messageBytesWanted)
                let count = min(rest.count, wanted)
                message += rest.prefix(count)
                rest = rest.dropFirst(count)
                bytesRead += Int64(count)
                recordBytesLeft -= count
                checkMessage()
            }
        }
        if state != .incomplete { (recordHead, message) = ([], []) }
    }

    /// The bytes of the message that are still to come, as far as is known.
    private var messageBytesWanted: Int { (messageBytes ?? Self.messageHeadBytes) - message.count }

    /// The bytes of the message with its head, once that is known.
    private var messageBytes: Int? {
        guard message.count >= Self.messageHeadBytes else { return nil }
        return Self.messageHeadBytes + (Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3]))
    }

    private mutating func checkRecordHead() {
        // Each byte is checked as soon as it arrives, so that another protocol is recognised by its first byte.
        let isPossible = recordHead[0] == Self.handshakeRecord && (recordHead.count < 2 || recordHead[1] == 3)
        guard isPossible else { return state = .notTLS }
        guard recordHead.count == Self.recordHeadBytes else { return }
        let size = Int(recordHead[3]) << 8 | Int(recordHead[4])
        recordHead = []
        recordCount += 1
        guard (1...Self.recordBytesMax).contains(size), recordCount <= Self.recordsMax else { return state = .notTLS }
        recordBytesLeft = size
    }

    private mutating func checkMessage() {
        guard message.first == Self.clientHello else { return state = .notTLS }
        guard let messageBytes else { return }
        guard messageBytes <= Self.helloBytesMax else { return state = .notTLS }
        guard message.count == messageBytes else { return }
        guard let hello = ClientHello(body: Array(message.dropFirst(Self.messageHeadBytes))) else {
            return state = .notTLS
        }
        state = .hello(hello, end: bytesRead)
    }
}
