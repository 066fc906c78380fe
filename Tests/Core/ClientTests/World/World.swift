import Client
import Determinism
import NotesContract
import NotesService
import Wire

/// Devices, their networks and one server in virtual time.
final class World {
    static let host = "127.0.0.1:8000"
    /// `ada:secret` and `bo:hidden` as Basic credentials.
    static let ada = "Basic YWRhOnNlY3JldA=="
    static let bo = "Basic Ym86aGlkZGVu"

    let time = VirtualTime()
    let server: WorldServer
    private(set) var devices: [Device] = []
    /// Violations of rules that hold in every world.
    var problems: [String] = []
    let seed: UInt64
    /// The number of processes started: each has a random seed of its own.
    var processCount: UInt64 = 0

    init(_ contract: APIContract = .compat, seed: UInt64 = 1, limits: NotesService.Limits = .init()) {
        self.seed = seed
        server = WorldServer(contract, time: time, seed: seed, limits: limits)
    }

    var now: Instant { time.now }

    /// Adds a device of the user ada.
    func addDevice(
        _ name: String, store: MemoryStore = MemoryStore(), policy: SyncPolicy = SyncPolicy(),
        account: SyncAccount? = SyncAccount(user: "ada", server: World.host), authorization: String = World.ada
    ) -> Device {
        let device = Device(
            name, in: self, store: store, policy: policy, account: account, authorization: authorization)
        devices.append(device)
        return device
    }

    /// Adds a device that has started.
    func startDevice(
        _ name: String = "A", policy: SyncPolicy = SyncPolicy(), store: MemoryStore = MemoryStore()
    ) -> Device {
        let device = addDevice(name, store: store, policy: policy)
        device.start()
        return device
    }

    // MARK: Time

    /// Executes events for a time.
    func run(for duration: Nanoseconds) {
        let end = now + duration
        while time.executeNext(until: end) {}
        time.advance(to: end)
    }

    /// Executes events until a condition holds; returns whether it did within the limit.
    @discardableResult
    func run(limit: Nanoseconds = .seconds(120), until condition: () -> Bool) -> Bool {
        let end = now + limit
        while !condition() {
            guard time.executeNext(until: end) else {
                time.advance(to: end)
                return condition()
            }
        }
        return true
    }

    /// Executes events until nothing is in flight on any device and nothing waits; returns whether that happened.
    @discardableResult
    func settle(limit: Nanoseconds = .seconds(120)) -> Bool {
        run(limit: limit) { devices.allSatisfy { $0.isSettled } }
    }

    // MARK: Paths

    /// Returns the path of a note, with every byte but the unreserved characters percent-encoded (RFC 3986, 2.3).
    static func path(_ id: RecordID) -> String {
        var path = NotesHTTP.notesPath
        for byte in id.text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                path.unicodeScalars.append(Unicode.Scalar(byte))
            default: path += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return path + "/"
    }

    /// Returns the identifier in a path; `nil` if it is not the path of a note.
    static func id(ofPath target: String) -> RecordID? {
        let path = target.utf8.prefix { $0 != UInt8(ascii: "?") }
        let prefix = NotesHTTP.notesPath.utf8
        guard path.starts(with: prefix), path.count > prefix.count else { return nil }
        var bytes: [UInt8] = []
        var rest = path.dropFirst(prefix.count)[...]
        while let byte = rest.popFirst(), byte != UInt8(ascii: "/") {
            if byte == UInt8(ascii: "%"), rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes.isEmpty ? nil : RecordID(String(decoding: bytes, as: UTF8.self))
    }
}

/// A condition of rules: the path of a note.
func isNote(_ id: RecordID) -> (String) -> Bool { { World.id(ofPath: $0) == id } }

/// A condition of rules: the index, or the list that the first load reads in its place.
func isIndex(_ target: String) -> Bool { target.hasPrefix(NotesHTTP.indexPath) || isList(target) }

/// A condition of rules: the list of notes with their contents.
func isList(_ target: String) -> Bool { target.hasPrefix(NotesHTTP.notesPath + "?") }

extension SyncPolicy {
    /// The default policy without lists in place of single reads.
    static let singleReads: SyncPolicy = {
        var policy = SyncPolicy()
        policy.readsLists = false
        return policy
    }()
}
