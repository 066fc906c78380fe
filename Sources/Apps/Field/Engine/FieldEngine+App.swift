public import Client
internal import Determinism
internal import Wire

/// The start of the app on what it has stored.
extension FieldEngine {
    /// Creates the engine on what the app has stored.
    public init(
        _ configuration: AppConfiguration, restoring state: AppState, behavior: FieldBehavior = FieldBehavior()
    ) throws(AppActError) {
        policy = FieldPolicy(configuration)
        self.behavior = behavior
        clock = configuration.clock
        random = RandomStream(seed: configuration.seed, "field/delays")
        choices = RandomStream(seed: configuration.seed, "field/choices")
        ids = RandomStream(seed: configuration.seed, "field/ids")
        func counter(_ name: String) -> Int {
            if case .integer(let number)? = state.json("counter/\(name)") { Int(number) } else { 0 }
        }
        if let json = state.json("payload") {
            guard let payload = FieldPayload(json, scansTree: behavior.scansTree) else {
                throw AppActError("the stored payload cannot be read")
            }
            self.payload = payload
            payloadTag = state.json("tag")?.text
        }
        if let key = state["screen"].flatMap({ RecordKey(String(decoding: $0, as: UTF8.self)) }) {
            screen = .record(key)
        }
        pulledAt = counter("pulled")
        pulledPeriod = counter("period")
        isSignedIn = counter("session") != 0
        language = state.json("language")?.text
        serverOffset = counter("offset")
        needsPull = counter("pull") != 0
        for (key, bytes) in state.values(under: "record/") {
            guard let record = JSONText.parse(bytes).flatMap({ FieldRecord(stored: $0) }) else {
                throw AppActError("the stored record '\(key)' cannot be read")
            }
            records[record.key] = record
            guard case .photo = record.content else { continue }
            let pieces = state.values(under: "photo/\(record.key) ")
            if !pieces.isEmpty { photoBytes[record.key] = pieces.flatMap(\.value) }
        }
        for (id, bytes) in state.values(under: "file/") {
            let pieces = state.values(under: "piece/\(id) ").map(\.value)
            guard let file = JSONText.parse(bytes).flatMap({ StoredFile(id: id, $0, pieces: pieces) }) else {
                throw AppActError("the stored file '\(id)' cannot be read")
            }
            files[id] = file
            openings = max(openings, file.opened)
        }
        if !behavior.resumesDownloads { discardPartialFiles() }
    }
}
