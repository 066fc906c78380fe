public import Client
internal import Expense
internal import Field
internal import Reader
public import Scenario
public import Wire

/// The service and the engine of an app, as worlds run them.
struct HostedApp: Sendable {
    /// The service.
    let service: any AppService.Type
    /// Returns the engine, with the behaviour of a run, on what the app has stored.
    let engine: @Sendable (AppConfiguration, AppState, RunBehavior) throws(AppActError) -> RunningApp

    private init<Engine: AppEngine, Behavior>(
        _ service: any AppService.Type,
        _ engine: @escaping @Sendable (AppConfiguration, AppState, Behavior) throws(AppActError) -> Engine,
        _ behavior: @escaping @Sendable (RunBehavior) -> Behavior
    ) {
        self.service = service
        self.engine = { (configuration, state, run) throws(AppActError) in
            RunningApp(try engine(configuration, state, behavior(run)))
        }
    }

    /// The service, the engine and the behaviour of each app.
    init(_ app: Scenario.App) {
        switch app {
        case .expense: self.init(ExpenseService.self, ExpenseEngine.init(_:restoring:behavior:), { $0.expense })
        case .reader: self.init(ReaderService.self, ReaderEngine.init(_:restoring:behavior:), { $0.reader })
        case .field: self.init(FieldService.self, FieldEngine.init(_:restoring:behavior:), { $0.field })
        }
    }
}

extension Scenario.App {
    /// Starts the app on what it has stored.
    ///
    /// - Parameters:
    ///   - host: The value of the `Host` field.
    ///   - authorization: The value of the `Authorization` field.
    ///   - behavior: The behaviour of the apps.
    public func start(
        _ configuration: AppConfiguration, restoring state: AppState, host: String, authorization: String,
        timeouts: HTTPTimeouts, behavior: RunBehavior
    ) throws(AppActError) -> ClientMachine<RunningApp> {
        var (configuration, state) = (configuration, state)
        behavior.adapt(self, &configuration, &state)
        let engine = try HostedApp(self).engine(configuration, state, behavior)
        return ClientMachine(engine: engine, host: host, authorization: authorization, timeouts: timeouts)
    }
}

extension Scenario.Device {
    /// The settings of the device's app.
    public var appSettings: RecordFields {
        var fields = RecordFields()
        for setting in settings { fields[setting.name] = setting.value }
        return fields
    }
}
