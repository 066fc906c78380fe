public import Client
public import Expense
public import Field
public import NotesService
public import Reader
public import Scenario

/// A mutant of a run: a deliberate defect of the reference clients, of the notes server, or of an app.
public enum RunMutant: Hashable, CaseIterable, Sendable, CustomStringConvertible {
    /// A defect of the clients.
    case client(Mutant)
    /// A defect of the server.
    case server(ServerMutant)
    /// A defect of the expense app.
    case pattern(ExpenseMutant)
    /// A defect of the network-first reader.
    case reader(ReaderMutant)
    /// A defect of the field app.
    case field(FieldMutant)

    public static let allCases: [RunMutant] =
        Mutant.allCases.map(RunMutant.client) + ServerMutant.allCases.map(RunMutant.server)
        + ExpenseMutant.allCases.map(RunMutant.pattern)
        + ReaderMutant.allCases.map(RunMutant.reader)
        + FieldMutant.allCases.map(RunMutant.field)

    /// The name in kebab-case, such as `no-backoff`.
    public var name: String {
        switch self {
        case .client(let mutant): mutant.rawValue
        case .server(let mutant): mutant.rawValue
        case .pattern(let mutant): mutant.rawValue
        case .reader(let mutant): mutant.rawValue
        case .field(let mutant): mutant.rawValue
        }
    }

    public var description: String { name }

    /// The app that has the defect; `nil` for another part.
    public var app: Scenario.App? {
        switch self {
        case .client, .server: nil
        case .pattern: .expense
        case .reader: .reader
        case .field: .field
        }
    }

    /// Returns the mutant with a name; `nil` if there is none.
    public init?(named name: String) {
        if let mutant = Mutant(rawValue: name) {
            self = .client(mutant)
        } else if let mutant = ServerMutant(rawValue: name) {
            self = .server(mutant)
        } else if let mutant = ExpenseMutant(rawValue: name) {
            self = .pattern(mutant)
        } else if let mutant = ReaderMutant(rawValue: name) {
            self = .reader(mutant)
        } else if let mutant = FieldMutant(rawValue: name) {
            self = .field(mutant)
        } else {
            return nil
        }
    }
}

extension Sequence<RunMutant> {
    /// The defects of the reference clients.
    public var ofClients: Set<Mutant> {
        Set(compactMap { if case .client(let mutant) = $0 { mutant } else { nil } })
    }

    /// The defects of the expense app.
    public var ofPatterns: Set<ExpenseMutant> {
        Set(compactMap { if case .pattern(let mutant) = $0 { mutant } else { nil } })
    }

    /// The defects of the network-first reader.
    public var ofReader: Set<ReaderMutant> {
        Set(compactMap { if case .reader(let mutant) = $0 { mutant } else { nil } })
    }

    /// The defects of the field app.
    public var ofField: Set<FieldMutant> {
        Set(compactMap { if case .field(let mutant) = $0 { mutant } else { nil } })
    }

    /// The defects of the server.
    public var ofServer: Set<ServerMutant> {
        Set(compactMap { if case .server(let mutant) = $0 { mutant } else { nil } })
    }
}

extension Scenario.Device {
    /// Returns the defects of the device's client in a run with mutants: the legacy client has its own.
    public func mutants(_ mutants: Set<Mutant>) -> Set<Mutant> { client == .legacy ? .legacy : mutants }
}
