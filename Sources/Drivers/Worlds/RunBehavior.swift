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

    /// A change of an app's configuration and of what it has stored, before each of its starts.
    public typealias AppAdaptation = @Sendable (inout AppConfiguration, inout AppState) -> Void

    private var adaptClient: ClientAdaptation = { _ in }
    private var adaptApp: [Scenario.App: AppAdaptation] = [:]
    /// Whether the accounts of a device have one store in common; otherwise each has its own.
    public var sharesStores = false
    /// Whether devices show push notices of services while an app does not run.
    public var showsPushNotices = true
    /// The notes server.
    public var server = NotesService.Behavior()
    /// The expense app.
    public var expense = ExpenseBehavior()
    /// The reader.
    public var reader = ReaderBehavior()
    /// The field app.
    public var field = FieldBehavior()

    /// Creates the behaviour of this program's clients, apps and server.
    public init() {}

    /// Returns the name of the store of an account on a device.
    public func storeName(of user: String) -> String { sharesStores ? "" : user }

    /// Adds an adaptation of the reference clients to the earlier ones.
    public mutating func adaptClients(_ adapt: @escaping ClientAdaptation) {
        adaptClient = { [earlier = adaptClient] configuration in
            earlier(&configuration)
            adapt(&configuration)
        }
    }

    /// Adds an adaptation of an app to the earlier ones.
    public mutating func adapt(_ app: Scenario.App, _ adapt: @escaping AppAdaptation) {
        adaptApp[app] = { [earlier = adaptApp[app]] configuration, state in
            earlier?(&configuration, &state)
            adapt(&configuration, &state)
        }
    }

    /// Adapts the start of an app.
    func adapt(_ app: Scenario.App, _ configuration: inout AppConfiguration, _ state: inout AppState) {
        adaptApp[app]?(&configuration, &state)
    }

    /// Returns the adaptation of a device's client: the legacy client has its own.
    public func adaptation(of device: Scenario.Device) -> ClientAdaptation {
        device.client == .legacy ? LegacyClient.adapt : adaptClient
    }
}
