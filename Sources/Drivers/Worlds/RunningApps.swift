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
    public func start(
        _ configuration: AppConfiguration, restoring state: AppState, host: String, authorization: String,
        timeouts: HTTPTimeouts, mutants: [RunMutant]
    ) throws(AppActError) -> ClientMachine<RunningApp> {
        let app =
            switch self {
            case .expense:
                RunningApp(try ExpenseEngine(configuration, restoring: state, mutants: mutants.ofPatterns))
            case .reader: RunningApp(try ReaderEngine(configuration, restoring: state, mutants: mutants.ofReader))
            case .field: RunningApp(try FieldEngine(configuration, restoring: state, mutants: mutants.ofField))
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
