import Client
import Determinism
import HTTPTypes
import Reader
import TestSupport
import Wire

/// A reader.
typealias ReaderClient = FakeClient<ReaderEngine, ReaderService>

extension FakeClient where Engine == ReaderEngine, Service == ReaderService {
    init(
        seed: UInt64 = 1, interface: NetworkInterface = NetworkInterface(isUp: true), settings: RecordFields = [:],
        hasList: Bool = true
    ) throws {
        let service = ReaderService()
        service.seed(
            ReaderRecord(
                key: "p1", kind: .profile, title: "Bo", text: "Cook", birthday: "1990-05-01", picture: "A pan"),
            owner: "ada")
        service.seed(ReaderRecord(key: "p2", kind: .profile, title: "Ada"), owner: "ada")
        service.seed(ReaderRecord(key: "a1", kind: .article, author: "p1", title: "Tea", text: "Boil"), owner: "ada")
        service.seed(ReaderRecord(key: "a2", kind: .article, author: "p2", title: "Rice", text: "Wash"), owner: "ada")
        try self.init(
            AppConfiguration(seed: seed, settings: settings), interface, service: service,
            makeEngine: { try ReaderEngine($0, restoring: $1) },
            execute: { service, http, body, _ in
                let response = service.respond(to: http, user: "ada", body: body)
                return (response.head, Array(response.body.utf8))
            })
        if hasList { answerAll() }
    }

    /// Lets the client finish on a good network. A read that is older than the result of a like needs another one.
    mutating func settleReads() throws {
        setInterface(true)
        for _ in 0..<2 {
            try perform(.sync)
            settle()
        }
    }

    var screen: AppView.Screen { engine.view.screen }

    func isLikedOnServer(_ key: String) -> Bool? { service.records(of: "ada").first { $0.key == key }?.isLiked }

    func count(_ kind: ReaderRecord.Kind) -> Int { service.records(of: "ada").count { $0.kind == kind } }

    /// All bytes of the store.
    var stored: String {
        state.values(under: "").map { "\($0.key)=\(String(decoding: $0.value, as: UTF8.self))" }
            .joined(separator: "\n")
    }
}
