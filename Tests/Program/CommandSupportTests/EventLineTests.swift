import Foundation
import Testing
import Wire

@testable import CommandSupport
@testable import slowlane

/// The lines of `slowlane events`.
@Suite struct EventLineTests {
    private static func lines(_ type: String, _ json: String) throws -> [String] {
        let data = try #require(JSONText.parse(Array(json.utf8)))
        return EventLine.lines(type, data, timeZone: try #require(TimeZone(secondsFromGMT: 3600)))
    }

    @Test func anExchangeHasItsPhases() throws {
        let json = #"""
            {"t":1790000012345.25,"proxy":"notes","id":7,"connection":0,"method":"PUT","target":"/n1","attempt":2,
             "status":409,"request_bytes":1,"response_bytes":2,"times":{"opened":null,"started":1000,"request_read":1001,
             "request_delivered":1120,"response_started":1140.5,"response_read":1141,"response_delivered":1312,"ended":1312},
             "link":"edge","fault":null,"end":"completed"}
            """#
        #expect(
            try Self.lines("exchange", json) == [
                "15:13:32.345  notes  exchange  #7 PUT /n1 attempt 2 409 completed in 312 ms "
                    + "(send 120 ms, wait 20.5 ms, receive 172 ms)"
            ])
    }

    @Test func textsFromTheNetworkArePrintable() throws {
        let json =
            #"{"t":0,"proxy":"p\u001b[31m","id":1,"method":"G\u202e","target":"/\u0007\n","attempt":1,"end":null}"#
        let line = try #require(try Self.lines("exchange", json).first)
        #expect(line == "01:00:00.000  p?[31m  exchange  #1 G? /?? open")
    }

    @Test func eachTypeHasALine() throws {
        #expect(
            try Self.lines(
                "link",
                #"{"t":0,"proxy":"p","by":"reset_after","name":"edge","outage":{"up":true,"down":false},"reset_at":9}"#
            ) == ["01:00:00.000  p  link  edge, outage, until reset, by reset_after"])
        #expect(
            try Self.lines("dropped", #"{"t":0,"count":null,"reason":"restart","proxy":null}"#)
                == ["01:00:00.000  -  dropped  events missed (restart)"])
        #expect(try Self.lines("unheard-of", "{}").isEmpty)
        for type in ["hello", "summary", "connection", "exchange", "link", "fault", "proxy", "recording", "dropped"] {
            #expect(try Self.lines(type, #"{"t":"x","proxies":[1]}"#).first?.hasPrefix("--:--:--.---") == true)
        }
    }
}
