import ConfigFiles
import ControlAPI
import LinkModel
import Testing

@Suite struct ProfileJSONTests {
    @Test func unitsStandInTheNames() throws {
        #expect(
            try ProfileCatalogue.profile("edge").conditions.json
                == #"{"connection_policy":"open","#
                + #""down":{"rate_bps":240000,"delay_ms":400,"loss_percent":0,"queue":"50 packets"},"#
                + #""up":{"rate_bps":200000,"delay_ms":440,"loss_percent":0,"queue":"50 packets"},"dns_delay_ms":0}"#)
    }

    @Test func impairmentsThatApplyHaveKeysOfTheirOwn() throws {
        let direction = try NetemExpression.parse("delay 100ms 20ms distribution normal loss 2.5% duplicate 1% limit 9")
        #expect(
            direction.json
                == #"{"rate_bps":null,"delay_ms":100,"loss_percent":2.5,"queue":"9 packets","#
                + #""jitter":{"span_ms":20,"distribution":"normal","reorders":false},"duplicate_percent":1}"#)
        var refusing = Conditions.clear
        refusing.connectionPolicy = .offline
        #expect(refusing.json.hasPrefix(#"{"connection_policy":"offline","#))
    }

    @Test func timelinesHaveEntriesWithTheirConditions() throws {
        let file = try ProfileCatalogue.timeline(
            "0s: edge, 10s: { ramp: 3g, over: 5s }, 20s: { flap: [{ 3g: 2s }, { 100-loss: 500ms }], jitter: 50% }")
        let json = file.json
        #expect(json.hasPrefix(#"{"type":"timeline","id":"inline","#))
        for part in [
            #""repeats_every_ms":null"#,
            #"{"start_ms":0,"phase":"hold","link":{"name":"edge","connection_policy":"open""#,
            #"{"start_ms":10000,"phase":"ramp","duration_ms":5000,"link":{"name":"3g""#,
            #"{"start_ms":20000,"phase":"flap","jitter_percent":50,"intervals":[{"duration_ms":2000,"link":{"name":"3g""#,
            #"{"duration_ms":500,"link":{"name":"100-loss""#,
        ] {
            #expect(json.contains(part), "\(part) in \(json)")
        }
    }
}
