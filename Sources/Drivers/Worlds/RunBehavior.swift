public import Client
public import Expense
public import Field
public import NotesService
public import Reader
public import Scenario

/// The behaviour of the clients, the apps and the server of a run: by default that of this program's, which a caller of a world
/// may replace in parts.
public struct RunBehavior: Sendable {
    /// A change of the configuration of a sync client, before each of its starts.
    public typealias ClientAdaptation = @Sendable (inout SyncEngine.Configuration) -> Void

    /// Adapts the reference clients.
    public private(set) var adaptClient: ClientAdaptation = { _ in }
    /// Deliberate defects of the server.
    public var server: Set<ServerMutant> = []
    /// Deliberate defects of the expense app.
    public var expense: Set<ExpenseMutant> = []
    /// Deliberate defects of the reader.
    public var reader: Set<ReaderMutant> = []
    /// Deliberate defects of the field app.
    public var field: Set<FieldMutant> = []

    /// Creates the behaviour of this program's clients, apps and server.
    public init() {}

    /// Adds an adaptation of the reference clients to the earlier ones.
    public mutating func adaptClients(_ adapt: @escaping ClientAdaptation) {
        adaptClient = { [earlier = adaptClient] configuration in
            earlier(&configuration)
            adapt(&configuration)
        }
    }

    /// Returns the adaptation of a device's client: the legacy client has its own.
    public func adaptation(of device: Scenario.Device) -> ClientAdaptation {
        device.client == .legacy ? LegacyClient.adapt : adaptClient
    }
}
