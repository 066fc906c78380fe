import GRDB
import HTTPTypes
import Testing

@testable import NotesService

/// The end of tokens, and their storage.
@Suite struct TokenTests {
    /// Examples of FIPS 180-4 by NIST.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (String(repeating: "a", count: 119), "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"),
    ]) func sha256Digests(text: String, digest: String) { #expect(SHA256.hexadecimal(Array(text.utf8)) == digest) }

    private static func service(_ store: NotesStore, _ password: String) -> NotesService {
        NotesService(store: store, users: ["ada": password, "bo": "hidden"])
    }

    private static func ask(
        _ service: NotesService, _ method: HTTPRequest.Method, _ path: String, _ authorization: String?,
        _ body: String = ""
    ) throws -> (status: Int, body: String) {
        var request = HTTPRequest(method: method, scheme: "http", authority: "localhost", path: path)
        request.headerFields[.authorization] = authorization
        let response = service.respond(to: request, body: Array(body.utf8))
        return (response.head.status.code, try response.body.text)
    }

    @Test func aChangeOfPasswordEndsTheTokens() throws {
        let store = try NotesStore(path: nil)
        let before = Self.service(store, "secret")
        let tokens = try Self.ask(before, .post, "/api/tokens/", Fixture.ada).body.split(separator: "\"").map(
            String.init)
        let (access, refresh) = ("Bearer \(tokens[3])", #"{"refresh_token":"\#(tokens[tokens.count - 2])"}"#)
        let same = Self.service(store, "secret")
        #expect(try Self.ask(same, .get, "/api/", access).status == 200)
        #expect(try Self.ask(same, .post, "/api/tokens/refresh/", nil, refresh).status == 200)
        let changed = Self.service(store, "another")
        #expect(try Self.ask(changed, .get, "/api/", access).status == 403)
        #expect(try Self.ask(changed, .post, "/api/tokens/refresh/", nil, refresh).status == 400)
    }

    @Test func theDatabaseStoresNeitherTokensNorPasswords() throws {
        let store = try NotesStore(path: nil)
        let tokens = try Self.ask(Self.service(store, "secret"), .post, "/api/tokens/", Fixture.ada).body
            .split(separator: "\"").map(String.init)
        let cells = try store.database().unsafeRead { database in
            try String.fetchAll(database, sql: "SELECT id || owner || kind || proof FROM token").joined()
        }
        #expect(cells.contains("refresh"))
        for secret in [tokens[3], tokens[tokens.count - 2], "secret"] { #expect(!cells.contains(secret)) }
    }
}
