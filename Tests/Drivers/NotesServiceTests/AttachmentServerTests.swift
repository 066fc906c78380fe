import Foundation
import NotesContract
import NotesServer
import NotesService
import TestSupport
import Testing

/// Attachments over HTTP: bodies of bytes that are not text, larger than a write.
@Suite(.tags(.services), .timeLimit(.minutes(10))) struct AttachmentServerTests {
    /// Sends a request and returns the head and the body of the response.
    private static func ask(_ port: Int, _ head: [String], _ body: [UInt8] = []) throws -> (head: String, body: [UInt8])
    {
        let socket = try TestSocket.connect(port: port)
        let lines =
            head + [
                "Host: 127.0.0.1:\(port)", "Authorization: \(Fixture.ada)", "Connection: close",
                "Content-Length: \(body.count)",
            ]
        try socket.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)
        let bytes = try socket.receiveToEnd()
        let end = try #require(bytes.firstRange(of: Array("\r\n\r\n".utf8)))
        return (String(decoding: bytes[..<end.lowerBound], as: UTF8.self), Array(bytes[end.upperBound...]))
    }

    @Test func bytesTravelInBothDirections() async throws {
        let fixture = try Fixture.withNote()
        let server = try await NotesServer.start(fixture.service, host: "127.0.0.1", port: 0)
        let port = server.port
        try await blocking {
            let bytes = Fixture.sample(1_500_000)
            let digest = AttachmentDigest(of: bytes).field
            let put = try Self.ask(
                port,
                [
                    "PUT \(Fixture.path) HTTP/1.1", "Upload-Complete: ?0", "Upload-Length: 1500000",
                    "Repr-Digest: \(digest)",
                ], Array(bytes[..<(1 << 20)]))
            #expect(put.head.hasPrefix("HTTP/1.1 201 "))
            let patch = try Self.ask(
                port,
                [
                    "PATCH \(Fixture.path) HTTP/1.1", "Upload-Complete: ?1", "Upload-Offset: 1048576",
                    "Content-Type: application/partial-upload",
                ], Array(bytes[(1 << 20)...]))
            #expect(patch.head.hasPrefix("HTTP/1.1 204 "))
            let whole = try Self.ask(port, ["GET \(Fixture.path) HTTP/1.1"])
            #expect(whole.head.contains("\r\nContent-Length: 1500000\r\n"))
            #expect(whole.head.contains("\r\nRepr-Digest: \(digest)\r\n"))
            #expect(whole.body == bytes)
            let part = try Self.ask(port, ["GET \(Fixture.path) HTTP/1.1", "Range: bytes=65000-200000"])
            #expect(part.head.hasPrefix("HTTP/1.1 206 "))
            #expect(part.body == Array(bytes[65_000...200_000]))
            let head = try Self.ask(port, ["HEAD \(Fixture.path) HTTP/1.1"])
            #expect(head.head.contains("\r\nContent-Length: 1500000\r\n"))
            #expect(head.body == [])
        }
        await server.stop()
    }

    /// The server executes a write only with its complete body.
    @Test func aRequestThatIsCutStoresNothing() async throws {
        let fixture = try Fixture.withNote()
        let server = try await NotesServer.start(fixture.service, host: "127.0.0.1", port: 0)
        let port = server.port
        let bytes = Fixture.sample(100_000)
        fixture.put(Array(bytes[..<1000]), of: bytes)
        try await blocking {
            let socket = try TestSocket.connect(port: port)
            let head = [
                "PATCH \(Fixture.path) HTTP/1.1", "Host: 127.0.0.1:\(port)", "Authorization: \(Fixture.ada)",
                "Upload-Complete: ?1", "Upload-Offset: 1000", "Content-Type: application/partial-upload",
                "Content-Length: 99000",
            ]
            try socket.send(Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8) + bytes[1000..<50_000])
            socket.finish()
            let reply = String(decoding: try socket.receiveToEnd(), as: UTF8.self)
            #expect(reply.isEmpty || reply.hasPrefix("HTTP/1.1 400 "))
        }
        #expect(fixture.transfer("HEAD").field("Upload-Offset") == "1000")
        await server.stop()
    }
}
