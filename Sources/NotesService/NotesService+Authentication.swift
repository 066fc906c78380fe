internal import Foundation
internal import GRDB
internal import HTTPTypes
internal import JSON

/// Who asks.
enum Caller {
    /// Somebody we know, by a password or by a token.
    case user(String, hasPassword: Bool)
    /// Somebody we know by a cookie, which a browser sends whoever's page asks for it.
    case browser(String, csrf: String)
    case nobody
    /// What they showed is wrong, or not valid any more.
    case refused(String, isToken: Bool)

    var hasPassword: Bool {
        if case .user(_, true) = self { return true }
        return false
    }
}

extension NotesService {
    func caller(of request: HTTPRequest) throws -> Caller {
        if let session = Cookies.value("sessionid", of: request),
            let token = try token(session, .session), let csrf = token.csrf
        {
            return .browser(token.owner, csrf: csrf)
        }
        guard let field = request.headerFields[.authorization] else { return .nobody }
        let words = field.split(separator: " ", maxSplits: 1).map(String.init)
        switch words.first?.lowercased() {
        case "basic":
            guard words.count == 2, let user = basicUser(words[1].trimmingCharacters(in: .whitespaces)) else {
                return .refused("Invalid username/password", isToken: false)
            }
            return .user(user, hasPassword: true)
        case "bearer" where contract.features.contains(.tokens):
            guard words.count == 2, let token = try token(words[1].trimmingCharacters(in: .whitespaces), .access)
            else { return .refused("The token is not valid, or not any more", isToken: true) }
            return .user(token.owner, hasPassword: false)
        default: return .nobody
        }
    }

    /// The user, if the password is right (RFC 7617).
    private func basicUser(_ credentials: String) -> String? {
        guard let data = Data(base64Encoded: credentials) else { return nil }
        let bytes = Array(data)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        return user(
            String(decoding: bytes[..<colon], as: UTF8.self),
            password: String(decoding: bytes[(colon + 1)...], as: UTF8.self))
    }

    /// The user as they were named to the server, if the password is right.
    func user(_ name: String, password: String) -> String? {
        // As much work for a name that does not exist.
        let known = users.index(forKey: ByteKey(name)).map { users[$0] }
        let isRight = Secrets.areEqual(known?.value ?? "", password)
        return isRight ? known?.key.text : nil
    }

    /// The refusal of somebody who is not known.
    func unauthenticated(_ caller: Caller) -> HTTPProblem {
        let message: String
        var challenge = "Basic realm=\"notes\", charset=\"UTF-8\""
        switch caller {
        case .refused(let reason, let isToken):
            message = reason
            if isToken { challenge = "Bearer realm=\"notes\", error=\"invalid_token\", \(challenge)" }
        default: message = "Authentication credentials were not provided."
        }
        var response = Response.error(contract.unauthenticated, message, key: "detail")
        if contract.unauthenticated == .unauthorized { response[.wwwAuthenticate] = challenge }
        return HTTPProblem(response)
    }

    // MARK: Tokens

    enum TokenKind: String { case access, refresh, session }

    struct Token {
        let owner: String
        let csrf: String?
    }

    /// A token that is valid now.
    func token(_ secret: String, _ kind: TokenKind) throws -> Token? {
        try store.read { database in
            let row = try Row.fetchOne(
                database.cachedStatement(
                    sql: "SELECT owner, csrf, proof FROM token WHERE id = ? AND kind = ? AND expires > ?"),
                arguments: [Secrets.tokenID(secret), kind.rawValue, tokenTime()])
            // A user who is not one any more, or who has another password now, has no token either.
            guard let row, let password = users[ByteKey(row["owner"] as String)],
                Secrets.areEqual(Secrets.proof(of: secret, password: password), row["proof"])
            else { return nil }
            return Token(owner: row["owner"], csrf: row["csrf"])
        }
    }

    /// Makes a token that is valid for some seconds, and as long as its owner's password stays.
    func makeToken(_ kind: TokenKind, of owner: String, seconds: Int, csrf: String? = nil, _ database: Database) throws
        -> String
    {
        let secret = makeSecret()
        try database.execute(
            sql: "INSERT INTO token (id, owner, kind, csrf, expires, proof) VALUES (?, ?, ?, ?, ?, ?)",
            arguments: [
                Secrets.tokenID(secret), owner, kind.rawValue, csrf, tokenTime() + seconds * 1000,
                Secrets.proof(of: secret, password: users[ByteKey(owner)] ?? ""),
            ])
        // Who asks for more and more loses the oldest.
        try database.execute(
            sql: """
                DELETE FROM token WHERE owner = ?1 AND kind = ?2 AND id NOT IN
                    (SELECT id FROM token WHERE owner = ?1 AND kind = ?2 ORDER BY rowid DESC LIMIT \(tokensMax))
                """, arguments: [owner, kind.rawValue])
        return secret
    }

    func makeSecret() -> String { (makeUUID() + makeUUID()).replacingOccurrences(of: "-", with: "") }
}

/// How many tokens of a kind a user has at once.
private let tokensMax = 1000

enum Secrets {
    /// The name under which the file has a token. It has no tokens: who reads it can use none.
    static func tokenID(_ secret: String) -> String { SHA256.hexadecimal(Array("slowlane token\n\(secret)".utf8)) }

    /// What shows that a token was given for a password. The token, which only its holder has, keeps the password from being
    /// guessed by it.
    static func proof(of secret: String, password: String) -> String {
        SHA256.hexadecimal(Array("slowlane password\n\(secret)\n\(password)".utf8))
    }

    /// Compares in a time that does not tell where two texts differ.
    static func areEqual(_ left: String, _ right: String) -> Bool {
        let left = Array(left.utf8)
        let right = Array(right.utf8)
        var difference = left.count ^ right.count
        for index in right.indices { difference |= Int(right[index] ^ (left.isEmpty ? 0 : left[index % left.count])) }
        return difference == 0
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
