internal import Client
internal import Determinism
internal import HTTPTypes
internal import NotesService
internal import Scenario

/// The service of an app in a run.
protocol AppService: Sendable {
    /// The path of the service, without a slash at its end.
    static var basePath: String { get }
    /// The collections whose members are records, such as `records` in `/expense/records/KEY`.
    static var recordCollections: [String] { get }

    /// Creates the service without records.
    init()
    /// Adds a record that the scenario has at the start. Returns whether it is valid.
    func seed(_ record: Scenario.SeedRecord, key: String, parent: String?, owner: String) -> Bool
    /// The records of a user.
    func shownRecords(of user: String) -> [ServiceRecord]
    /// Changes the title, the text or both of a record as its other clients would; `nil` keeps one. Without both the
    /// record is deleted. Returns whether the service has made the change.
    func change(_ key: String, title: String?, text: String?, owner: String) -> Bool
    /// Returns the restoration of everything that the service stores now.
    func backup() -> @Sendable () -> Void
    /// Returns the text of the push notice about the result of an operation; `nil` for none.
    func pushNotice(ofOperation operation: String) -> String?
    /// Returns the response to a request.
    ///
    /// - Parameters:
    ///   - user: The authenticated user; `nil` for none.
    ///   - milliseconds: The milliseconds since 1970 of the server's clock.
    func response(
        to request: HTTPRequest, user: String?, body: [UInt8], milliseconds: Int
    ) -> (head: HTTPResponse, body: [UInt8])
}

extension AppService {
    func pushNotice(ofOperation operation: String) -> String? { nil }
}

/// A record of a service as expectations see it.
struct ServiceRecord {
    let key: String
    let revision: Int
    let title: String?
    let text: String?
}

/// The services of a run's apps, as one service beside the notes.
struct AppServices: Sendable {
    /// The paths of the collections of all services, with a slash at their ends.
    private static let collectionPaths: [[UInt8]] = Scenario.App.allCases.flatMap { app in
        let service = HostedApp(app).service
        return service.recordCollections.map { Array("\(service.basePath)/\($0)/".utf8) }
    }

    private let services: [Scenario.App: any AppService]

    /// Creates the services of a scenario's apps with the records of the scenario.
    ///
    /// - Parameter names: The names and identifiers of the run's notes, to which those of the records are added.
    init(
        _ scenario: Scenario, users: [String], names: inout [(row: String, uuid: String)], ids: RandomIdentifiers
    ) throws(SetupError) {
        var services: [Scenario.App: any AppService] = [:]
        for app in scenario.apps { services[app] = HostedApp(app).service.init() }
        self.services = services
        var keys: [String: String] = [:]
        for record in scenario.records {
            guard let service = record.app.flatMap({ services[$0] }) else { continue }
            let key = ids.uuid()
            keys[record.row] = key
            names.append((record.row, key))
            for user in users {
                guard service.seed(record, key: key, parent: record.parent.flatMap { keys[$0] }, owner: user) else {
                    throw SetupError("\(scenario.name): the record '\(record.row)' is not valid")
                }
            }
        }
    }

    /// Returns the records of a user.
    func records(of user: String) -> [ServiceRecord] {
        Scenario.App.allCases.flatMap { services[$0]?.shownRecords(of: user) ?? [] }
    }

    /// Changes or deletes a record of a user. Returns whether a service has made the change.
    func change(_ key: String, title: String?, text: String?, owner: String) -> Bool {
        services.values.contains { $0.change(key, title: title, text: text, owner: owner) }
    }

    /// The push notices of the services; `nil` without a service.
    var pushNotices: PushNotices? {
        let services = Array(services.values)
        if services.isEmpty { return nil }
        return PushNotices { id in services.lazy.compactMap { $0.pushNotice(ofOperation: id) }.first }
    }

    /// Returns the restoration of everything that the services store now.
    func backup() -> @Sendable () -> Void {
        let restorations = services.values.map { $0.backup() }
        return { for restore in restorations { restore() } }
    }

    /// The services as a part of the notes server; `nil` without a service.
    ///
    /// - Parameter now: Returns the milliseconds since 1970.
    func mounted(now: @escaping @Sendable () -> Int) -> MountedService? {
        guard !services.isEmpty else { return nil }
        let services = services.values.map { (path: "\(type(of: $0).basePath)/", service: $0) }
        @Sendable func service(_ path: String) -> (any AppService)? {
            services.first { path.utf8.starts(with: $0.path.utf8) }?.service
        }
        return MountedService(serves: { service($0) != nil }) { request, user, body in
            guard let service = service(request.path ?? "") else { return (HTTPResponse(status: .notFound), []) }
            return service.response(to: request, user: user, body: body, milliseconds: now())
        }
    }

    /// Returns the path segment that identifies the record of a request; `nil` if it concerns none.
    static func recordSegment(ofPath path: Substring.UTF8View) -> ArraySlice<UInt8>? {
        guard let prefix = collectionPaths.first(where: { path.starts(with: $0) }) else { return nil }
        return Array(path.dropFirst(prefix.count).prefix { $0 != UInt8(ascii: "/") })[...]
    }
}
