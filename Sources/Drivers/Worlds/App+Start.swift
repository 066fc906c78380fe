public import Client
internal import Expense
internal import Field
internal import Reader
public import Scenario
public import Wire

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
        let app =
            switch self {
            case .expense:
                RunningApp(try ExpenseEngine(configuration, restoring: state, behavior: behavior.expense))
            case .reader: RunningApp(try ReaderEngine(configuration, restoring: state, behavior: behavior.reader))
            case .field: RunningApp(try FieldEngine(configuration, restoring: state, behavior: behavior.field))
            }
        return ClientMachine(engine: app, host: host, authorization: authorization, timeouts: timeouts)
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
