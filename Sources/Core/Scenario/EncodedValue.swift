internal import Impairment
package import LinkModel

/// A value that has an encoding in digests. The encoding has numbers in place of the names of cases, so that another
/// name changes no digest; the numbers never change, and a new case has a new number. Names and texts of the user's file,
/// of protocols and of clients are encoded as they are.
package protocol EncodedValue {
    /// The value in a trace.
    var text: String { get }

    /// Appends the encoding.
    func encode(into encoder: inout EventEncoder)
}

extension EncodedValue where Self: CustomStringConvertible {
    package var text: String { description }
}

extension EncodedValue where Self: RawRepresentable<String> {
    package var text: String { rawValue }
}

/// A case without values, encoded as its number.
package protocol NumberedCase: EncodedValue {
    /// The number.
    var number: UInt8 { get }
}

extension NumberedCase {
    package func encode(into encoder: inout EventEncoder) { encoder.begin(number) }
}

extension ScenarioDirector.Phase: NumberedCase {
    package var number: UInt8 {
        switch self {
        case .setup: 1
        case .script: 2
        case .restore: 3
        case .quiesce: 4
        case .verify: 5
        case .check: 6
        case .ended: 7
        }
    }
}

extension Scenario.Fault.Point: NumberedCase {
    package var number: UInt8 {
        switch self {
        case .at(.beforeRequest): 1
        case .at(.midRequest): 2
        case .at(.beforeRequestEnd): 3
        case .at(.beforeResponse): 4
        case .at(.afterResponseHead): 5
        case .at(.midResponse): 6
        case .at(.afterResponse): 7
        case .stored: 8
        case .any: 9
        }
    }
}

extension Scenario.NetworkEntry.Interface: NumberedCase {
    package var number: UInt8 {
        switch self {
        case .cellular: 1
        case .wifi: 2
        case .wired: 3
        }
    }
}

extension Direction: NumberedCase {
    package var number: UInt8 { self == .up ? 1 : 0 }
    package var text: String { self == .up ? "up" : "down" }
}

extension History.Icon: NumberedCase {
    package var text: String { rawValue }

    package var number: UInt8 {
        switch self {
        case .plain: 1
        case .upload: 2
        case .conflict: 3
        case .error: 4
        }
    }
}

extension Scenario.Choice: NumberedCase {
    package var number: UInt8 {
        switch self {
        case .theirs: 1
        case .mine: 2
        case .delete: 3
        }
    }
}

extension Scenario.Action: EncodedValue {
    package func encode(into encoder: inout EventEncoder) {
        switch self {
        case .create(let row, let title, let text): encoder.add(1, row, title, text)
        case .edit(let row, let title, let text): encoder.add(2, row, title, text)
        case .delete(let row): encoder.add(3, row)
        case .resolve(let row, let title, let text): encoder.add(4, row, title, text)
        case .choose(let row, let choice):
            encoder.add(5, row)
            encoder.add(choice)
        case .editStale(let row, let title, let text): encoder.add(6, row, title, text)
        case .deleteStale(let row): encoder.add(7, row)
        case .keep(let row): encoder.add(8, row)
        case .pin(let row): encoder.add(9, row)
        case .open(let row):
            encoder.begin(10)
            encoder.add(row)
        case .sync: encoder.begin(11)
        case .send(let request):
            encoder.add(12, request.method)
            encoder.add(request.path)
            encoder.add(request.headers)
            encoder.add(request.body)
        case .kill: encoder.begin(13)
        case .start: encoder.begin(14)
        case .upgrade(let version):
            encoder.begin(15)
            encoder.add(version)
        case .clock(let shift):
            encoder.begin(16)
            encoder.add(shift)
        case .call(let name, let arguments):
            encoder.add(17, name)
            encoder.add(arguments)
        case .signOut: encoder.begin(18)
        case .signIn(let user): encoder.add(19, user)
        case .disk(let disk):
            encoder.begin(20)
            switch disk {
            case .normal: encoder.add(0)
            case .full: encoder.add(1)
            case .slow(let delay):
                encoder.add(2)
                encoder.add(delay)
            }
        case .server(let operation): encoder.add(21, operation.rawValue)
        }
    }
}

extension EventEncoder {
    fileprivate mutating func add(_ number: UInt8, _ name: String) {
        begin(number)
        add(name)
    }

    fileprivate mutating func add(_ number: UInt8, _ row: String, _ title: String?, _ text: String?) {
        add(number, row)
        add(title)
        add(text)
    }

    fileprivate mutating func add(_ arguments: [Scenario.Argument]) {
        add(arguments.count)
        for argument in arguments {
            add(argument.name)
            add(argument.value)
        }
    }
}
