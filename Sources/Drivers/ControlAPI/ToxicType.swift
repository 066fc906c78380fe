internal import Impairment
internal import Wire

/// A type of toxic, with its attributes in the order of responses.
enum ToxicType: String, CaseIterable {
    case latency, bandwidth, timeout, slicer, noop
    case slowClose = "slow_close"
    case resetPeer = "reset_peer"
    case limitData = "limit_data"
    case packetLoss = "packet_loss"

    /// The names of the attributes.
    var attributes: [String] {
        switch self {
        case .latency: ["latency", "jitter"]
        case .bandwidth: ["rate"]
        case .slowClose: ["delay"]
        case .timeout, .resetPeer: ["timeout"]
        case .slicer: ["average_size", "size_variation", "delay"]
        case .limitData: ["bytes"]
        case .packetLoss: ["loss_rate", "correlation"]
        case .noop: []
        }
    }

    /// Returns what the number in an attribute counts, in words: `milliseconds`.
    func unit(of attribute: String) -> String {
        switch self {
        case .latency, .slowClose, .timeout, .resetPeer: "milliseconds"
        case .bandwidth: "kilobytes per second"
        case .slicer: attribute == "delay" ? "microseconds" : "bytes"
        case .limitData: "bytes"
        case .packetLoss: "a probability from 0 to 1"
        case .noop: ""
        }
    }

    /// Whether the attributes are floating-point numbers instead of integers.
    var isFractional: Bool { self == .packetLoss }

    /// Reads the attributes in `fields`; the others keep the old values, or 0.
    func values(_ fields: JSONFields?, over old: [Double]? = nil, integers: [Int64]? = nil) throws(APIError) -> Values {
        var values = Values(
            integers: integers ?? attributes.map { _ in 0 }, fractions: old ?? attributes.map { _ in 0 })
        for (index, name) in attributes.enumerated() {
            if isFractional {
                if let number = try fields?.number(name) { values.fractions[index] = number }
            } else if let number = try fields?.integer(name) {
                values.integers[index] = number
            }
        }
        return values
    }

    /// The values of the attributes, in the order of ``attributes``: as integers or as fractions.
    struct Values: Hashable {
        var integers: [Int64]
        var fractions: [Double]
    }

    /// The attributes as JSON.
    func json(_ values: Values) -> String {
        JSONText.object(
            attributes.enumerated().map { index, name in
                (name, isFractional ? JSONText.number(values.fractions[index]) : "\(values.integers[index])")
            })
    }

    func effect(_ values: Values) -> Toxic.Effect {
        let numbers = values.integers
        switch self {
        case .latency: return .latency(latency: numbers[0], jitter: numbers[1])
        case .bandwidth: return .bandwidth(rate: numbers[0])
        case .slowClose: return .slowClose(delay: numbers[0])
        case .timeout: return .timeout(timeout: numbers[0])
        case .resetPeer: return .resetPeer(timeout: numbers[0])
        case .slicer: return .slicer(averageSize: numbers[0], sizeVariation: numbers[1], delay: numbers[2])
        case .limitData: return .limitData(bytes: numbers[0])
        case .packetLoss: return .packetLoss(lossRate: values.fractions[0], correlation: values.fractions[1])
        case .noop: return .noop
        }
    }
}
