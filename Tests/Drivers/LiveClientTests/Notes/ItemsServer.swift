import HTTPSockets
import HTTPTypes
import Synchronization
import Wire

/// A small server of somebody else's: JSON objects in the collection `/items/`, with numbers as revisions.
final class ItemsServer: Sendable {
    private struct State {
        var items: [String: JSONObject] = [:]
        var lastRevision: Int64 = 0
        var requests: [String] = []
    }

    private let state = Mutex(State())
    private let server = Mutex<HTTPServer?>(nil)

    /// The bound port.
    var port: Int { server.withLock { $0?.port } ?? 0 }

    /// The items as they are stored.
    var items: [JSONObject] { state.withLock { Array($0.items.values) } }

    /// The method and target of each request.
    var requests: [String] { state.withLock { $0.requests } }

    static func start(port: Int = 0) async throws -> ItemsServer {
        let items = ItemsServer()
        let server = try await HTTPServer.start(host: "127.0.0.1", port: port, limits: .init()) { request, exchange in
            let body = (try? await exchange.readBody()) ?? []
            return items.respond(to: request, body)
        }
        items.server.withLock { $0 = server }
        return items
    }

    func stop() async { await server.withLock { $0 }?.stop() }

    /// Changes an item as another client does.
    func set(_ id: String, _ members: JSONObject) {
        state.withLock { _ = Self.store(id, members, &$0) }
    }

    private static func store(_ id: String, _ members: JSONObject, _ state: inout State) -> JSONObject {
        var item = members
        state.lastRevision += 1
        item["id"] = .text(id)
        item["revision"] = .integer(state.lastRevision)
        state.items[id] = item
        return item
    }

    private func respond(to request: HTTPRequest, _ body: [UInt8]) -> HTTPServer.Response {
        let path = String(request.path?.prefix { $0 != "?" } ?? "")
        let id = path.hasPrefix("/items/") ? String(path.dropFirst(7).prefix { $0 != "/" }) : ""
        let members = JSONText.parse(body)?.object ?? JSONObject()
        return state.withLock { state in
            state.requests.append("\(request.method.rawValue) \(path)")
            func isStale() -> Bool {
                let current = state.items[id]?["revision"].map { "\"\($0.json)\"" }
                return request.headerFields[.ifMatch] != current
            }
            switch (request.method, id) {
            case (.get, ""):
                return Self.response(.ok, .array(state.items.values.map { .object($0) }))
            case (.get, _):
                guard let item = state.items[id] else { return Self.response(.notFound, nil) }
                return Self.response(.ok, .object(item))
            case (.post, ""):
                guard let id = members["id"]?.text else { return Self.response(.badRequest, nil) }
                if let item = state.items[id] { return Self.response(.conflict, .object(item)) }
                return Self.response(.created, .object(Self.store(id, members, &state)))
            case (.put, _):
                guard state.items[id] != nil else { return Self.response(.notFound, nil) }
                if isStale() { return Self.response(.conflict, nil) }
                return Self.response(.ok, .object(Self.store(id, members, &state)))
            case (.delete, _):
                guard state.items[id] != nil else { return Self.response(.notFound, nil) }
                if isStale() { return Self.response(.conflict, nil) }
                state.items[id] = nil
                return HTTPServer.Response(HTTPResponse(status: .noContent), .text(""))
            default: return Self.response(.methodNotAllowed, nil)
            }
        }
    }

    private static func response(_ status: HTTPResponse.Status, _ body: JSONValue?) -> HTTPServer.Response {
        var head = HTTPResponse(status: status)
        head.headerFields[.contentType] = "application/json"
        return HTTPServer.Response(head, .text((body ?? ["detail": "no such item, or another revision"]).json))
    }
}
