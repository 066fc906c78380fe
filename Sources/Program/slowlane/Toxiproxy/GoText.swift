internal import Foundation

/// Go's formats of numbers, booleans and strings.
enum GoText {
    /// Formats a number as Go's `%v`: the shortest digits that identify it, with an exponent from 1e+06 on and below
    /// 1e-04.
    static func format(_ value: Double) -> String {
        guard value.isFinite else { return value.isNaN ? "NaN" : value < 0 ? "-Inf" : "+Inf" }
        if value == 0 { return value.sign == .minus ? "-0" : "0" }
        let (digits, exponent) = shortestDigits(of: value.magnitude)
        let sign = value < 0 ? "-" : ""
        if exponent < -4 || exponent >= 6 {
            let fraction = digits.dropFirst()
            let power = exponent.magnitude < 10 ? "0\(exponent.magnitude)" : "\(exponent.magnitude)"
            return
                "\(sign)\(digits.prefix(1))\(fraction.isEmpty ? "" : ".\(fraction)")e\(exponent < 0 ? "-" : "+")\(power)"
        }
        if exponent < 0 { return "\(sign)0.\(String(repeating: "0", count: -exponent - 1))\(digits)" }
        let whole = digits.prefix(exponent + 1)
        let fraction = digits.dropFirst(exponent + 1)
        let zeros = String(repeating: "0", count: exponent + 1 - whole.count)
        return "\(sign)\(whole)\(zeros)\(fraction.isEmpty ? "" : ".\(fraction)")"
    }

    /// Returns the digits without zeros at either end, and the power of ten of the first digit.
    private static func shortestDigits(of value: Double) -> (digits: String, exponent: Int) {
        let parts = value.description.split(separator: "e")
        var exponent = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
        let halves = parts[0].split(separator: ".", omittingEmptySubsequences: false)
        var digits = halves.joined()
        exponent += halves[0].count - 1
        while digits.hasPrefix("0") {
            digits.removeFirst()
            exponent -= 1
        }
        while digits.hasSuffix("0") { digits.removeLast() }
        return (digits, exponent)
    }

    /// Parses a number as Go's `strconv.ParseFloat`.
    static func number(_ text: String) -> Double? {
        let hasHexadecimalPrefix = text.drop { $0 == "+" || $0 == "-" }.lowercased().hasPrefix("0x")
        guard !text.contains("("), !hasHexadecimalPrefix || text.lowercased().contains("p"), let number = Double(text)
        else { return nil }
        // A number that is too large is an error, but the word "inf" is not.
        let isInfinityWord = text.lowercased().contains("inf")
        return number.isInfinite && !isInfinityWord ? nil : number
    }

    /// Parses a boolean as Go's `strconv.ParseBool`.
    static func bool(_ text: String) -> Bool? {
        switch text {
        case "1", "t", "T", "TRUE", "true", "True": true
        case "0", "f", "F", "FALSE", "false", "False": false
        default: nil
        }
    }

    /// Returns a string in quotation marks, with escapes.
    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case "\n": quoted += "\\n"
            case "\t": quoted += "\\t"
            case "\r": quoted += "\\r"
            case "\u{0}"..<"\u{20}", "\u{7F}": quoted += "\\x" + String(format: "%02x", scalar.value)
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
