internal import Scenario
internal import Yams

/// A state of a device, or of any device.
struct DeviceState: Sendable {
    let device: String
    let condition: StateCondition

    init(_ device: String, _ condition: StateCondition) {
        self.device = device
        self.condition = condition
    }
}

/// A form of values of a state: the value, or a mapping with a value that must differ.
private struct NegatableForm: Sendable {
    let plain: FormatCodec<String>
    let not: FormatMapping<String>

    init(_ name: String, _ plain: FormatCodec<String>) {
        self.plain = plain
        not = FormatMapping(
            name, "a state", [.required("not", \.self, plain, "The value that must differ.")], blank: { _ in "" })
    }
}

/// States of devices.
extension ScenarioFormat {
    static let states = FormatMapping<[DeviceState]>(
        "states", "a state",
        [anyState(\.self, "The state of at least one device; with `always`, of every device.")],
        named: deviceStates(\.self, after: 0), blank: { _ in [] })

    /// The state of at least one device.
    static func anyState<Whole>(
        _ path: any WritableKeyPath<Whole, [DeviceState]> & Sendable, _ about: String
    ) -> FormatKey<Whole> {
        FormatKey(
            Key("any", .object("state"), about),
            read: { fields, whole in
                // It comes before those of devices.
                if let found = fields.reader.state(of: Scenario.anyDevice, fields) {
                    whole[keyPath: path].insert(found, at: 0)
                }
                return true
            },
            write: { whole in
                whole[keyPath: path].first { $0.device == Scenario.anyDevice }.map { state.tree($0.condition) }
            })
    }

    /// The states of devices, by their names.
    static func deviceStates<Whole>(
        _ path: any WritableKeyPath<Whole, [DeviceState]> & Sendable, after position: Int
    ) -> FormatMapping<Whole>.Named {
        .init(
            NamedKeys(.device, .object("state"), after: position), names: \.deviceNames,
            read: { fields, whole in
                let reader = fields.reader
                whole[keyPath: path] += reader.deviceNames.compactMap { reader.state(of: $0, fields) }
                return true
            },
            write: { whole in
                whole[keyPath: path].filter { $0.device != Scenario.anyDevice }.map {
                    ScenarioWriter.entry($0.device, state.tree($0.condition))
                }
            })
    }

    static let state = FormatMapping<StateCondition>(
        "state", "a state", [row] + checks + period, blank: { _ in StateCondition(row: nil, checks: []) },
        check: { $1.reader.check(&$0, $1) })

    private static let row = FormatKey<StateCondition>.optional(
        "row", \.row, .row, isNeeded: true,
        "The note; required by `present`, `icon`, `text`, `title`, `keeps`, `opacity` and `strike`.")

    private static let period: [FormatKey<StateCondition>] = [
        .optional(
            "since", \.since, .timeOrMark, default: "0s",
            "The start of the period; a mark stands for the effect of its action."),
        .optional(
            "until", \.until, .timeOrMark, default: "the end of the run",
            "The end of the period, exclusive; a mark stands for the start of its action."),
    ]

    private static let checks: [FormatKey<StateCondition>] = [
        check(.present, booleanValue, "Whether the note is shown."),
        check(
            .icon, iconValue,
            "The note's icon: `upload` is a pending change. Without `row`, with `any`: the icon of any note."),
        check(.title, textValue, "The visible title."),
        check(.text, textValue, "The visible text."),
        check(
            .keeps, textValue,
            "A text that the client stores for the note: the visible text, a pending text, or the base or the "
                + "server's side of a conflict."),
        check(.pending, booleanValue, "Whether the note, or without `row` any note, has a pending change."),
        check(.outbox, countValue, "The number of pending changes."),
        check(
            .screen, textValue,
            "The name of the visible screen. That of the reference client is `list`, or the name of the open note."),
        check(
            .control, textValue,
            "The name of a control that can be used on the visible screen. See [screens](#screens)."),
        check(
            .dialog, textValue,
            "The name of the visible dialog; `none` for no dialog. The reference client has no dialogs."),
        check(
            .toast, textValue,
            "The name of a message that vanishes by itself; `none` for no message. The reference client has "
                + "`no-connection`."),
        check(
            .opacity, fractionValue,
            "The opacity of the note. In the reference client 0.5 while its deletion is pending, otherwise 1."),
        check(
            .strike, booleanValue,
            "Whether the note is struck through. In the reference client, while its deletion is pending."),
        check(
            .error, textValue,
            "The message at the note, or without `row` the notice or error on the screen; `none` for no message. Only for "
                + "apps."),
        check(
            .marker, markerValue,
            "The mark of an error at the note or at what contains it; without `row`, at the root. Only for apps."),
        check(
            .field, textValue,
            "An input of the form or a value of the page on the screen, such as `to=Bo`. Only for apps."),
    ]

    private static let textValue = NegatableForm("not-text", .text)
    private static let booleanValue = NegatableForm(
        "not-boolean", .word(.boolean) { $1.boolean($0).map { $0 ? "true" : "false" } })
    private static let countValue = NegatableForm(
        "not-number", .word(.integer(0...numberMax)) { $1.integer($0, 0...numberMax).map(String.init) })
    private static let markerValue = NegatableForm("not-marker", .choice(AppVocabulary.markers))
    private static let fractionValue = NegatableForm("not-fraction", .word(.fraction) { $1.fraction($0) })
    private static let iconValue = NegatableForm("not-icon", .choice(["none", "upload", "conflict", "error"]))

    /// The mappings with values that must differ.
    static let negations: [Object] = [
        textValue, booleanValue, countValue, markerValue, fractionValue, iconValue,
    ].map(\.not.object)

    /// A check of a value.
    private static func check(
        _ key: StateCondition.Check.Key, _ form: NegatableForm, _ about: String
    ) -> FormatKey<StateCondition> {
        let (plain, not) = (form.plain, form.not)
        return FormatKey<StateCondition>(
            Key(key.rawValue, .either([plain.shape, .object(not.object.name)]), about),
            read: { fields, state in
                guard let node = fields[key.rawValue] else { return true }
                let reader = fields.reader
                let isNegated = node.mapping != nil
                guard reader.isAboutNote(key, node, fields),
                    let value = isNegated ? not.read(node, reader) : plain.read(node, reader)
                else { return false }
                reader.checkValue(value, of: key, node.mapping?["not"] ?? node, on: reader.subject)
                state.checks.append(StateCondition.Check(key: key, value: value, isNegated: isNegated))
                return true
            },
            write: { state in
                state.checks.first { $0.key == key }.map { check in
                    check.isNegated ? not.tree(check.value) : plain.write(check.value)
                }
            }
        ).amongAtLeastOne
    }
}

extension FormatCodec where Value == [DeviceState] {
    /// The states of devices.
    ///
    /// - Parameter context: The key that has them, in error messages.
    static func states(in context: String) -> Self {
        Self(.object("states"), read: { $1.states($0, in: context) }, write: { ScenarioFormat.states.tree($0) })
    }
}

extension FormatCodec where Value == DeviceState {
    /// The state of one device.
    ///
    /// - Parameter context: The key that has it, in error messages.
    static func oneState(in context: String) -> Self {
        Self(.object("states"), read: { $1.oneState($0, in: context) }, write: { ScenarioFormat.states.tree([$0]) })
    }
}
