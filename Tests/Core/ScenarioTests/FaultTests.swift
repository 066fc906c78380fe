import Determinism
import Impairment
import LinkModel
import Testing

@testable import Scenario

/// Faults of scenarios as those of links.
@Suite struct FaultTests {
    private static func fault(
        _ point: Scenario.Fault.Point, bytes: Int64? = nil, side: FaultSide? = nil, _ action: Scenario.Fault.Action
    ) -> Scenario.Fault {
        Scenario.Fault(
            request: .any, device: nil, point: point, bytes: bytes, side: side, action: action,
            location: SourceLocation(file: "s.yaml"))
    }

    @Test func theLinkGetsAllValuesOfAFault() {
        let fault = Self.fault(.at(.midResponse), bytes: 100, side: .client, .link(.reset))
        #expect(
            fault.onLink(3, at: fault.point, of: "A")
                == ExchangeFault(rule: 3, point: .midResponse, action: .reset, bytes: 100, side: .client))
        let drawn = Self.fault(.any, .link(.stall)).onLink(0, at: .at(.midRequest), of: "A")
        #expect(drawn == ExchangeFault(rule: 0, point: .midRequest, action: .stall, isDrawn: true))
    }

    /// The link holds the connection of a client that is killed, and only reports the killing of another one.
    @Test func aKillIsAReportOfTheLink() {
        let others = Self.fault(.at(.beforeResponse), .kill(device: "B")).onLink(0, at: .at(.beforeResponse), of: "A")
        #expect(others?.action == .report(hold: .zero))
        for killed in [nil, "A"] {
            let fault = Self.fault(.at(.beforeResponse), .kill(device: killed))
            #expect(fault.onLink(0, at: fault.point, of: "A")?.action == .report(hold: .seconds(10)))
        }
    }

    @Test func theLinkDoesNotReachThePointStored() {
        #expect(Self.fault(.stored, .link(.reset)).onLink(0, at: .stored, of: "A") == nil)
    }

    @Test func aProblemNamesWhatIsNotPossible() {
        let faults: [(Scenario.Fault, String?)] = [
            (Self.fault(.any, .link(.respond(.portal))), nil), (Self.fault(.stored, .kill(device: nil)), nil),
            (Self.fault(.at(.midResponse), .link(.respond(.portal))), "respond is not possible at mid-response"),
            (Self.fault(.stored, .link(.stall)), "only reset, close and kill"),
            (Self.fault(.stored, side: .client, .link(.reset)), "have no effect at stored"),
            (Self.fault(.at(.afterResponse), bytes: 5, .link(.reset)), "bytes applies to"),
            (Self.fault(.at(.midResponse), side: .server, .kill(device: nil)), "side applies to"),
            (Self.fault(.any, .link(.goAway)), "HTTP/2 only"),
            (Self.fault(.any, .link(.delay(.zero))), "delay must last"),
        ]
        for (fault, problem) in faults {
            #expect((fault.problem == nil) == (problem == nil))
            #expect(fault.problem?.contains(problem ?? "") != false, "\(fault.problem ?? "")")
        }
    }

    /// The names of points are those of the file format, and each has a number of its own in digests.
    @Test func eachPointHasANameAndANumber() {
        let points = Scenario.Fault.Point.allCases
        #expect(points.count == FaultPoint.allCases.count + 2)
        #expect(points.allSatisfy { Scenario.Fault.Point(rawValue: $0.rawValue) == $0 })
        #expect(points.map(\.number).sorted() == Array(1...9))
        #expect(Scenario.Fault.Point(rawValue: "queued") == nil)
    }
}
