internal import Scenario

/// The format of scenario files: mappings, their keys, and the shapes of values.
///
/// Each mapping is declared once (``FormatMapping``): the declaration reads it, writes it, and is its entry in this table.
/// The order of keys in formatted files, suggestions for unknown keys, the JSON Schema, the explanations of keys and the
/// tables of the documentation are taken from the table.
public enum ScenarioFormat {
    /// A mapping.
    public struct Object: Sendable {
        /// The name in this table, such as `fault`.
        public let name: String
        /// The mapping in error messages, such as `a fault`.
        public let title: String
        /// The keys, in canonical order.
        public let keys: [Key]
        /// Keys that are names given by the scenario, such as those of devices.
        public let named: NamedKeys?
        /// Keys of which exactly one must be present.
        public let exactlyOne: [String]
        /// Keys of which at least one must be present.
        public let atLeastOne: [String]

        init(
            _ name: String, _ title: String, _ keys: [Key], named: NamedKeys? = nil, exactlyOne: [String] = [],
            atLeastOne: [String] = []
        ) {
            self.name = name
            self.title = title
            self.keys = keys
            self.named = named
            self.exactlyOne = exactlyOne
            self.atLeastOne = atLeastOne
        }

        /// Returns the key with a name; `nil` if there is none.
        func key(_ name: String) -> Key? { keys.first { $0.name == name } }
    }

    /// A key of a mapping.
    public struct Key: Sendable {
        /// The name.
        public let name: String
        /// The shape of the value.
        public let shape: Shape
        /// Whether the key must be present.
        public let isRequired: Bool
        /// The default; `nil` if there is none.
        public let defaultText: String?
        /// The meaning in a sentence or two.
        public let about: String

        init(_ name: String, _ shape: Shape, required: Bool = false, default text: String? = nil, _ about: String) {
            self.name = name
            self.shape = shape
            isRequired = required
            defaultText = text
            self.about = about
        }
    }

    /// Keys that are names, and the shape of their values.
    public struct NamedKeys: Sendable {
        /// The kind of name.
        public let kind: NameKind
        /// The shape of the values.
        public let shape: Shape
        /// The position in the canonical order: the number of keys before them.
        public let position: Int

        init(_ kind: NameKind, _ shape: Shape, after position: Int = 0) {
            self.kind = kind
            self.shape = shape
            self.position = position
        }
    }

    /// A kind of name.
    public enum NameKind: String, Sendable {
        case device, actor, newDevice, newWriter, row, newRow, mark, newMark, metric, parameter, variant, time, link
        case field

        /// The kind in tables.
        var text: String {
            switch self {
            case .device: "device"
            case .actor: "device or writer"
            case .newDevice: "name of a device"
            case .newWriter: "name of a writer"
            case .row: "note"
            case .newRow: "name of a note"
            case .mark: "mark"
            case .newMark: "name of a mark"
            case .metric: "metric"
            case .parameter: "name of a parameter"
            case .variant: "name of a variant"
            case .time: "time"
            case .link: "link"
            case .field: "name"
            }
        }

        /// The regular expression of the names; `nil` for any text.
        var pattern: String? {
            switch self {
            case .device, .actor, .newDevice, .newWriter: "^[A-Z][A-Za-z0-9]*$"
            case .row, .newRow: "^(?!(any|count)$)[A-Za-z][A-Za-z0-9_-]*$"
            case .mark, .newMark: "^[a-z][a-z0-9-]*$"
            case .parameter, .variant: "^[a-z0-9-]+$"
            case .metric: "^(" + Threshold.Metric.allCases.map(\.rawValue).joined(separator: "|") + ")$"
            case .time: ScenarioFormat.timePattern
            case .link, .field: nil
            }
        }
    }

    /// The shape of a value.
    public indirect enum Shape: Sendable {
        /// The format's version.
        case version
        /// Any scalar.
        case text
        /// A name in kebab-case.
        case kebabCase
        /// A whole number.
        case integer(ClosedRange<Int>)
        /// A decimal number from 0 to 1.
        case fraction
        /// `true` or `false`.
        case boolean
        /// A time or duration.
        case time
        /// A duration with a sign.
        case signedTime
        /// A percentage.
        case percentage
        /// A number of bytes.
        case size
        /// One of some words.
        case choice([String])
        /// A name.
        case name(NameKind)
        /// A time or a mark.
        case timeOrMark
        /// A pattern of requests.
        case request
        /// The result of an exchange.
        case response
        /// An invariant.
        case invariant
        /// The path of a file.
        case path
        /// Network conditions: the name or path of a profile, or a mapping.
        case link
        /// A value of any kind.
        case anything
        /// A list.
        case list(Shape, atLeast: Int, atMost: Int)
        /// A mapping of the table.
        case object(String)
        /// A mapping from names to values.
        case map(NameKind, Shape)
        /// One of several shapes.
        case either([Shape])
    }

    /// The maximum number of devices.
    public static let devicesMax = 100
    /// The maximum number of writers.
    public static let writersMax = 100
    /// The maximum number of runs of one file: variants times rows of the matrix.
    public static let runsMax = 256
    /// The maximum length of a chain of `extends`.
    public static let extendsMax = 4
    /// The maximum number of scalars of a file, with aliases written out.
    static let scalarsMax = 200_000
    /// The greatest number where the table gives no other limit.
    static let numberMax = 1_000_000_000
    /// The greatest random seed of a file: readers of JSON may have floating-point numbers only.
    static let seedMax = 9_007_199_254_740_991

    /// The regular expression of times.
    static let timePattern =
        #"^(?=.)(\d+(\.\d+)? *h *)?(\d+(\.\d+)? *m *)?(\d+(\.\d+)? *s *)?(\d+(\.\d+)? *ms)?$"#
    /// The methods of requests.
    static let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

    /// All mappings; the first is the whole file.
    public static let objects: [Object] = top + actors + faults + steps + expectations

    private static let index = Dictionary(uniqueKeysWithValues: objects.map { ($0.name, $0) })

    /// Returns the mapping with a name.
    ///
    /// - Precondition: The table has the mapping.
    public static func object(_ name: String) -> Object {
        guard let object = index[name] else { preconditionFailure("no mapping is called '\(name)'") }
        return object
    }
}
