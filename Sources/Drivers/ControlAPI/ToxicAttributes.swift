internal import ConfigFiles
public import Wire

/// The attributes of toxics as `NAME=VALUE` texts, for clients of the API.
public enum ToxicAttributes {
    /// An invalid attribute.
    public struct AttributeError: Error, CustomStringConvertible {
        public let description: String
    }

    /// Returns attributes as members of a JSON object; values that are numbers become numbers.
    ///
    /// - Parameter type: The toxic's type, for the check of names and probabilities. Unknown types are not checked,
    ///   since a Toxiproxy server may have toxics of its own.
    public static func parse(_ pairs: [String], ofType type: String?) throws(AttributeError) -> JSONObject {
        var members = JSONObject()
        for pair in pairs {
            guard let equals = pair.firstIndex(of: "="), equals != pair.startIndex else {
                throw AttributeError(description: "'\(pair)' must be NAME=VALUE")
            }
            let name = String(pair[..<equals])
            let text = String(pair[pair.index(after: equals)...])
            if let type { try check(name, text, pair, ofType: type) }
            members[name] =
                Int64(text).map { .integer($0) } ?? Double(text).flatMap { $0.isFinite ? .number($0) : nil }
                ?? .text(text)
        }
        return members
    }

    private static func check(
        _ name: String, _ text: String, _ pair: String, ofType type: String
    ) throws(AttributeError) {
        guard let toxic = ToxicType(rawValue: type) else { return }
        let known = toxic.attributes
        // The server reads names in any letter case.
        guard known.contains(name.lowercased()) else {
            let all = known.isEmpty ? "it has none" : "it has \(known.joined(separator: ", "))"
            throw AttributeError(
                description: "'\(pair)': a \(type) toxic has no attribute '\(name)'"
                    + "\(NearestName.hint(name.lowercased(), in: known)) (\(all))")
        }
        guard let value = Double(text), value.isFinite else {
            throw AttributeError(
                description: "'\(pair)': the value is a number without a unit (\(toxic.unit(of: name.lowercased()))), "
                    + "such as \(name)=\(toxic.isFractional ? "0.1" : "100")")
        }
        if toxic == .packetLoss, !(0...1).contains(value) {
            throw AttributeError(description: "'\(pair)': the value must be a probability from 0 to 1")
        }
    }

    /// Returns a hint for a type that the server has rejected; empty if the type is known.
    public static func hint(ofUnknownType type: String) -> String {
        let known = ToxicType.allCases.map(\.rawValue)
        return known.contains(type)
            ? "" : "\(NearestName.hint(type, in: known)) (Slowlane has \(known.joined(separator: ", ")))"
    }
}
