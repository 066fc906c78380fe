import ForwardProxy
import NIOCore
import Testing

/// Ends of connections, early responses, upgrades and tunnels.
@Suite struct RequestForwarderClosingTests {
    private static let get = "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"
    private static let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    @Test func aClientThatHasClosedGetsTheResponsesToItsRequests() {
        var scene = ForwarderScene()
        scene.client(Self.get + Self.get)
        scene.change { $0.clientClosed() }
        scene.origin(1, Self.empty)
        #expect(scene.takeEvents() == ["open 1 a:80"])
        scene.origin(1, Self.empty)
        #expect(scene.takeReply() == Self.empty + Self.empty)
        #expect(scene.takeEvents() == ["FIN client", "close 1"])
    }

    @Test func aClientThatClosesWithoutARequestIsClosed() {
        for start in ["", "GET http://a/ HT", "\r\n"] {
            var scene = ForwarderScene()
            scene.client(start)
            scene.change { $0.clientClosed() }
            #expect(scene.takeEvents() == ["FIN client"] && scene.takeReply().isEmpty, "\(start)")
            #expect(scene.forwarder.isFinished)
        }
    }

    @Test func theOriginSeesATruncatedRequest() {
        var scene = ForwarderScene()
        scene.client("POST http://a/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nab")
        scene.change { $0.clientClosed() }
        #expect(scene.takeSent(1).hasSuffix("\r\n\r\nab"))
        #expect(scene.takeEvents() == ["open 1 a:80", "FIN 1"])
        scene.origin(1, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        #expect(scene.takeReply() == "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        #expect(scene.takeEvents() == ["FIN client", "close 1"])
    }

    @Test func aTruncatedRequestWaitsForItsConnection() {
        var scene = ForwarderScene()
        scene.connects = false
        scene.client("POST http://a/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nab")
        scene.change { $0.clientClosed() }
        #expect(scene.takeEvents() == ["open 1 a:80"])
        scene.change { $0.established(1) }
        #expect(scene.takeSent(1).hasSuffix("\r\n\r\nab"))
        #expect(scene.takeEvents() == ["FIN 1"])
    }

    @Test func aClientThatAbortsAbortsTheActiveOriginOnly() {
        var scene = ForwarderScene()
        scene.client(Self.get)
        scene.origin(1, Self.empty)
        scene.client("GET http://b/ HTTP/1.1\r\n\r\n")
        _ = scene.takeEvents()
        scene.change { $0.clientGone() }
        #expect(scene.takeEvents() == ["close 1", "RST 2"])
        scene.origin(2, Self.empty)
        scene.change { $0.reset(2) }
        #expect(scene.takeReply() == Self.empty && scene.takeEvents().isEmpty)
    }

    @Test func anEarlyResponseEndsTheConnection() {
        var scene = ForwarderScene()
        scene.client("POST http://a/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nab")
        scene.origin(1, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nn")
        #expect(
            scene.takeReply() == "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nn")
        // The request goes on until the response is complete.
        scene.client("c")
        #expect(scene.takeSent(1).hasSuffix("abc"))
        scene.origin(1, "o")
        #expect(scene.takeReply() == "o")
        #expect(scene.takeEvents() == ["open 1 a:80", "FIN client", "close 1"])
        scene.client("de" + Self.get)
        #expect(scene.takeEvents().isEmpty && scene.forwarder.bytesKept == 0)
    }

    @Test func aClientThatWaitsForContinueGetsIt() {
        var scene = ForwarderScene()
        scene.client("PUT http://a/ HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        scene.origin(1, "HTTP/1.1 100 Continue\r\n\r\n")
        #expect(scene.takeReply() == "HTTP/1.1 100 Continue\r\n\r\n")
        scene.client("hi")
        scene.origin(1, Self.empty)
        #expect(scene.takeReply() == Self.empty && !scene.forwarder.isFinished)
    }

    // MARK: Upgrades and tunnels

    private static let upgrade = "GET http://a/ HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    private static let switching =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

    @Test func afterAnUpgradeBytesPassInBothDirections() {
        var scene = ForwarderScene()
        scene.client("GET http://b/ HTTP/1.1\r\n\r\n")
        scene.origin(1, Self.empty)
        _ = (scene.takeEvents(), scene.takeReply())
        scene.client(Self.upgrade + "early")
        scene.origin(2, Self.switching + "frame")
        #expect(scene.takeReply() == Self.switching + "frame")
        #expect(scene.takeSent(2).hasSuffix("\r\n\r\nearly"))
        #expect(scene.takeEvents() == ["open 2 a:80", "close 1"])
        scene.client(Self.get)
        scene.origin(2, Self.empty)
        #expect(scene.takeSent(2) == Self.get && scene.takeReply() == Self.empty)
    }

    @Test func eachSideOfATunnelClosesByItself() {
        for clientIsFirst in [true, false] {
            var scene = ForwarderScene()
            scene.client(Self.upgrade)
            scene.origin(1, Self.switching)
            _ = (scene.takeEvents(), scene.takeReply(), scene.takeSent(1))
            if clientIsFirst {
                scene.change { $0.clientClosed() }
                #expect(scene.takeEvents() == ["FIN 1"])
                scene.origin(1, "late")
                #expect(scene.takeReply() == "late" && !scene.forwarder.isFinished)
                scene.change { $0.finished(1) }
                #expect(scene.takeEvents() == ["FIN client", "close 1"])
            } else {
                scene.change { $0.finished(1) }
                #expect(scene.takeEvents() == ["FIN client"])
                scene.client("late")
                #expect(scene.takeSent(1) == "late" && !scene.forwarder.isFinished)
                scene.change { $0.clientClosed() }
                #expect(scene.takeEvents() == ["FIN 1", "close 1"])
            }
            #expect(scene.forwarder.isFinished)
        }
    }

    @Test func aTunnelThatIsAbortedIsAbortedOnTheOtherSide() {
        for isClient in [true, false] {
            var scene = ForwarderScene()
            scene.client(Self.upgrade)
            scene.origin(1, Self.switching)
            _ = scene.takeEvents()
            scene.change { forwarder in
                if isClient { forwarder.clientGone() } else { forwarder.reset(1) }
            }
            #expect(scene.takeEvents() == [isClient ? "RST 1" : "RST client"])
        }
    }

    @Test func aRefusedUpgradeIsAnOrdinaryResponse() {
        var scene = ForwarderScene()
        scene.client(Self.upgrade + Self.get)
        scene.origin(1, Self.empty)
        #expect(scene.takeReply() == Self.empty)
        #expect(scene.takeSent(1).hasSuffix("Connection: Upgrade\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"))
    }

    @Test func aTunnelMayFollowRequests() {
        var scene = ForwarderScene()
        scene.client(Self.get)
        scene.origin(1, Self.empty)
        _ = (scene.takeEvents(), scene.takeReply(), scene.takeSent(1))
        scene.client("CONNECT a:80 HTTP/1.1\r\n\r\nhello")
        #expect(scene.takeReply() == "HTTP/1.1 200 Connection established\r\n\r\n")
        #expect(scene.takeSent(2) == "hello")
        #expect(scene.takeEvents() == ["open 2 a:80", "close 1"])
        scene.origin(2, "bytes")
        #expect(scene.takeReply() == "bytes")
    }

    @Test func aFailedTunnelKeepsTheConnection() {
        var scene = ForwarderScene()
        scene.connects = false
        scene.client("CONNECT a:1 HTTP/1.1\r\n\r\n")
        scene.change { $0.failed(1, .connectionTimeout) }
        #expect(scene.takeReply().hasPrefix("HTTP/1.1 504 Gateway Timeout\r\n"))
        scene.client(Self.get)
        #expect(scene.takeEvents() == ["open 1 a:1", "open 2 a:80"])
    }
}
