internal import HTTPTypes
internal import ProxyServer

/// Why a call is refused: a status, and the text that clients of Toxiproxy know.
struct APIFailure: Error, Hashable {
    let status: HTTPResponse.Status
    let text: String

    init(_ status: HTTPResponse.Status, _ text: String) {
        self.status = status
        self.text = text
    }

    static func badBody(_ reason: String) -> APIFailure { APIFailure(.badRequest, "bad request body: \(reason)") }
    static func missing(_ field: String) -> APIFailure { APIFailure(.badRequest, "missing required field: \(field)") }
    static let badStream = APIFailure(.badRequest, "stream was invalid, can be either upstream or downstream")
    static let badType = APIFailure(.badRequest, "invalid toxic type")
    static let noProxy = APIFailure(.notFound, "proxy not found")
    static let noToxic = APIFailure(.notFound, "toxic not found")
    static let proxyExists = APIFailure(.conflict, "proxy already exists")
    static let toxicExists = APIFailure(.conflict, "toxic already exists")

    /// As the system's refusal to listen reads in Go.
    static func cannotListen(_ error: ProxyError) -> APIFailure {
        APIFailure(.internalServerError, "listen tcp \(error.endpoint): bind: \(error.reason)")
    }

    func at(proxy number: Int) -> APIFailure { APIFailure(status, "\(text) at proxy \(number)") }
}
