internal import Impairment
internal import JSON
internal import LinkModel

/// A toxic as it was asked for, and as it is shown.
struct StoredToxic: Hashable {
    let name: String
    let type: ToxicType
    let stream: Direction
    /// The stream as it was written.
    let streamText: String
    private(set) var toxicity: Float
    private(set) var values: ToxicType.Values

    /// Reads a new toxic. `isTaken` says whether a name is; it is asked before the attributes are read.
    init(_ fields: Fields, isTaken: (String) -> Bool) throws(APIFailure) {
        streamText = try fields.text("stream") ?? "downstream"
        let type = try fields.text("type") ?? ""
        let name = try fields.text("name") ?? ""
        let toxicity = try fields.float("toxicity")
        switch streamText.lowercased() {
        case "upstream": stream = .up
        case "downstream": stream = .down
        default: throw .badStream
        }
        guard let type = ToxicType(rawValue: type) else { throw .badType }
        self.type = type
        self.name = name.isEmpty ? "\(type.rawValue)_\(streamText)" : name
        if isTaken(self.name) { throw .toxicExists }
        self.toxicity = toxicity ?? 1
        values = try type.values(try fields.object("attributes"))
    }

    /// The same with those settings that are given.
    func updated(_ fields: Fields) throws(APIFailure) -> StoredToxic {
        var toxic = self
        toxic.values = try type.values(
            try fields.object("attributes"), over: values.fractions, integers: values.integers)
        toxic.toxicity = try fields.float("toxicity") ?? toxicity
        return toxic
    }

    var json: String {
        JSONText.object([
            ("attributes", type.json(values)), ("name", JSONText.string(name)),
            ("type", JSONText.string(type.rawValue)), ("stream", JSONText.string(streamText)),
            ("toxicity", JSONText.number(toxicity)),
        ])
    }

    /// What a proxy is told.
    var toxic: Toxic {
        Toxic(name: name, stream: stream, toxicity: Double(toxicity), effect: type.effect(values))
    }
}
