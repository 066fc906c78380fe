@testable import ForwardProxy

/// The message of a name server, as tests compose it.
struct DNSResponse {
    /// A record: its owner, type, time to live and data.
    struct Record {
        var name: String
        var type: UInt16
        var timeToLive: UInt32 = 300
        var data: [UInt8]

        static func address(_ name: String, _ address: String, timeToLive: UInt32 = 300) -> Record {
            let bytes = IPAddress(address)?.bytes ?? []
            return Record(name: name, type: bytes.count == 4 ? 1 : 28, timeToLive: timeToLive, data: bytes)
        }

        static func alias(_ name: String, _ target: String, timeToLive: UInt32 = 300) -> Record {
            Record(name: name, type: 5, timeToLive: timeToLive, data: DNSName(target)?.bytes ?? [])
        }

        static func authority(_ name: String, timeToLive: UInt32, minimum: UInt32) -> Record {
            // The root twice, and four numbers before the minimum.
            let data: [UInt8] = [0, 0] + [UInt8](repeating: 7, count: 16)
            return Record(name: name, type: 6, timeToLive: timeToLive, data: data + DNSResponse.bytes(minimum))
        }

        var bytes: [UInt8] {
            (DNSName(name)?.bytes ?? [0]) + DNSResponse.bytes(type) + [0, 1] + DNSResponse.bytes(timeToLive)
                + DNSResponse.bytes(UInt16(data.count)) + data
        }
    }

    var code: UInt8 = 0
    var isTruncated = false
    var answers: [Record] = []
    var authorities: [Record] = []

    /// Returns the message that responds to a query.
    func bytes(to query: [UInt8]) -> [UInt8] {
        let flags: [UInt8] = [0x81 | (isTruncated ? 2 : 0), 0x80 | code]
        let counts = [1, UInt16(answers.count), UInt16(authorities.count), 0].flatMap { Self.bytes($0) }
        let records = (answers + authorities).flatMap(\.bytes)
        return Array(query[..<2]) + flags + counts + Array(query[12...]) + records
    }

    static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }
}
