internal import Impairment
internal import LinkModel
internal import Wire

/// A toxic as defined by a request and shown in responses.
struct StoredToxic: Hashable {
    let name: String
    let type: ToxicType
    let stream: Direction
    /// The stream in the letter case of the request.
    let streamText: String
    private(set) var toxicity: Float
    private(set) var values: ToxicType.Values

    /// Reads a new toxic.
    ///
    /// - Parameter isTaken: Returns whether the proxy has a toxic of this name; called before the attributes are read.
    init(_ fields: JSONFields, isTaken: (String) -> Bool) throws(APIError) {
        streamText = try fields.text("stream") ?? "downstream"
        let type = try fields.text("type") ?? ""
        let name = try fields.text("name") ?? ""
        let toxicity = try fields.float("toxicity")
        switch streamText.lowercased() {
        case "upstream": stream = .up
        case "downstream": stream = .down
        default: throw .invalidStream
        }
        guard let type = ToxicType(rawValue: type) else { throw .invalidToxicType }
        self.type = type
        self.name = name.isEmpty ? "\(type.rawValue)_\(streamText)" : name
        if isTaken(self.name) { throw .toxicExists }
        self.toxicity = toxicity ?? 1
        values = try type.values(try fields.object("attributes"))
    }

    /// Returns the toxic with the toxicity and the attributes that `fields` contains.
    func updated(_ fields: JSONFields) throws(APIError) -> StoredToxic {
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

    /// The toxic that a proxy applies.
    var toxic: Toxic {
        Toxic(name: name, stream: stream, toxicity: Double(toxicity), effect: type.effect(values))
    }
}
