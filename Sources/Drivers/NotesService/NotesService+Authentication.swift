internal import Foundation
internal import GRDB
internal import HTTPTypes
internal import NotesContract
internal import Wire

/// The authentication of a request.
enum Authentication {
    /// A user with a password or an access token.
    case user(String, hasPassword: Bool)
    /// A user with a session cookie. Browsers add it to requests of any page, so writes need the CSRF token too.
    case session(String, csrf: String)
    case anonymous
    /// Wrong or expired credentials, with the reason.
    case rejected(String, isToken: Bool)

    var hasPassword: Bool {
        if case .user(_, true) = self { return true }
        return false
    }
}

extension NotesService {
    func authentication(of request: HTTPRequest) throws -> Authentication {
        if let session = Cookies.value("sessionid", of: request),
            let token = try token(session, .session), let csrf = token.csrf
        {
            return .session(token.owner, csrf: csrf)
        }
        guard let field = request.headerFields.value(of: .authorization) else { return .anonymous }
        let words = field.utf8.split(separator: 0x20, maxSplits: 1)
        switch words.first.map({ String(Substring($0)).lowercased() }) {
        case "basic":
            guard words.count == 2, let user = basicUser(String(words[1].trimmingSpace)) else {
                return .rejected(NotesHTTP.wrongPassword, isToken: false)
            }
            return .user(user, hasPassword: true)
        case "bearer" where contract.features.contains(.tokens):
            guard words.count == 2, let token = try token(String(words[1].trimmingSpace), .access)
            else { return .rejected("The token is invalid or has expired", isToken: true) }
            return .user(token.owner, hasPassword: false)
        default: return .anonymous
        }
    }

    /// Returns the user of Basic credentials (RFC 7617); `nil` if they are wrong.
    private func basicUser(_ credentials: String) -> String? {
        guard let data = Data(base64Encoded: credentials) else { return nil }
        let bytes = Array(data)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        return user(
            String(decoding: bytes[..<colon], as: UTF8.self),
            password: String(decoding: bytes[(colon + 1)...], as: UTF8.self))
    }

    /// Returns the configured name of a user; `nil` if the password is wrong.
    func user(_ name: String, password: String) -> String? {
        // The comparison also runs for an unknown name, so that its duration does not disclose which names exist.
        let known = users.index(forKey: ByteKey(name)).map { users[$0] }
        let isRight = password.matchesSecret(known?.value ?? "")
        return isRight ? known?.key.text : nil
    }

    /// Returns the error of a request without valid credentials.
    func unauthenticated(_ authentication: Authentication) -> HTTPProblem {
        let message: String
        var challenge = "Basic realm=\"notes\", charset=\"UTF-8\""
        switch authentication {
        case .rejected(let reason, let isToken):
            message = reason
            if isToken { challenge = "Bearer realm=\"notes\", error=\"invalid_token\", \(challenge)" }
        default: message = NotesHTTP.noCredentials
        }
        var response = Response.error(contract.unauthenticatedStatus, message, key: "detail")
        if contract.unauthenticatedStatus == .unauthorized { response[.wwwAuthenticate] = challenge }
        return HTTPProblem(response)
    }

    // MARK: Tokens

    enum TokenKind: String { case access, refresh, session }

    struct Token {
        let owner: String
        let csrf: String?
    }

    /// Returns the token with this secret; `nil` if there is none, or it has expired.
    func token(_ secret: String, _ kind: TokenKind) throws -> Token? {
        try store.read { transaction in
            let (id, now) = (Secrets.tokenID(secret), tokenTime())
            let found: (owner: String, csrf: String?, proof: String)?
            switch transaction {
            case .memory(let memory):
                let token = memory.token(id: id).flatMap { $0.kind == kind.rawValue && $0.expires > now ? $0 : nil }
                found = token.map { ($0.owner, $0.csrf, $0.proof) }
            case .sqlite(let database):
                let row = try Row.fetchOne(
                    database.cachedStatement(
                        sql: "SELECT owner, csrf, proof FROM token WHERE id = ? AND kind = ? AND expires > ?"),
                    arguments: [id, kind.rawValue, now])
                found = row.map { ($0["owner"], $0["csrf"], $0["proof"]) }
            }
            // The removal of a user or a change of their password ends their tokens.
            guard let found, let password = users[ByteKey(found.owner)],
                Secrets.proof(of: secret, password: password).matchesSecret(found.proof)
            else { return nil }
            return Token(owner: found.owner, csrf: found.csrf)
        }
    }

    /// Creates a token and returns its secret. The token ends after `seconds`, or with a change of its owner's
    /// password.
    func makeToken(
        _ kind: TokenKind, of owner: String, seconds: Int, csrf: String? = nil, _ transaction: StoreTransaction
    ) throws -> String {
        let secret = makeSecret()
        let database: Database
        switch transaction {
        case .sqlite(let found): database = found
        case .memory(let memory):
            memory.insert(
                NotesMemory.Token(
                    owner: owner, kind: kind.rawValue, csrf: csrf, expires: tokenTime() + seconds * 1000,
                    proof: Secrets.proof(of: secret, password: users[ByteKey(owner)] ?? "")),
                id: Secrets.tokenID(secret), max: tokensMax)
            return secret
        }
        try database.execute(
            sql: "INSERT INTO token (id, owner, kind, csrf, expires, proof) VALUES (?, ?, ?, ?, ?, ?)",
            arguments: [
                Secrets.tokenID(secret), owner, kind.rawValue, csrf, tokenTime() + seconds * 1000,
                Secrets.proof(of: secret, password: users[ByteKey(owner)] ?? ""),
            ])
        // Deletes the oldest tokens above the limit.
        try database.execute(
            sql: """
                DELETE FROM token WHERE owner = ?1 AND kind = ?2 AND id NOT IN
                    (SELECT id FROM token WHERE owner = ?1 AND kind = ?2 ORDER BY rowid DESC LIMIT \(tokensMax))
                """, arguments: [owner, kind.rawValue])
        return secret
    }

    func makeSecret() -> String { (makeUUID() + makeUUID()).replacingOccurrences(of: "-", with: "") }
}

/// The maximum number of tokens of one kind per user.
private let tokensMax = 1000

enum Secrets {
    /// Returns the primary key of a token. The database holds no secrets, so that its readers cannot use the tokens.
    static func tokenID(_ secret: String) -> String { SHA256.hexadecimal(Array("slowlane token\n\(secret)".utf8)) }

    /// Returns the proof that a token was issued for a password. The secret is part of the hash, so that readers of the
    /// database cannot guess the password from it.
    static func proof(of secret: String, password: String) -> String {
        SHA256.hexadecimal(Array("slowlane password\n\(secret)\n\(password)".utf8))
    }
}

enum Cookies {
    static func value(_ name: String, of request: HTTPRequest) -> String? {
        for field in request.headerFields[values: .cookie] {
            for pair in field.utf8.split(separator: UInt8(ascii: ";")) {
                let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1)
                guard parts.count == 2, parts[0].drop(while: { $0 == 0x20 }).elementsEqual(name.utf8) else { continue }
                return String(parts[1])
            }
        }
        return nil
    }
}
