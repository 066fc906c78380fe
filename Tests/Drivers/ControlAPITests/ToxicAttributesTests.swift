import ControlAPI
import Testing
import Wire

@Suite struct ToxicAttributesTests {
    @Test func numbersAndTextsAreParsed() throws {
        let members = try ToxicAttributes.parse(["latency=5", "Jitter=7"], ofType: "latency")
        #expect(members["latency"] == .integer(5) && members["Jitter"] == .integer(7))
        #expect(try ToxicAttributes.parse(["mode=x"], ofType: "http_delay")["mode"] == .text("x"))
        #expect(try ToxicAttributes.parse(["loss_rate=0.5"], ofType: "packet_loss")["loss_rate"] == .number(0.5))
    }

    @Test(arguments: [
        (
            "bandwidth", "rates=1",
            "'rates=1': a bandwidth toxic has no attribute 'rates'; did you mean 'rate'? (it has rate)"
        ),
        ("noop", "rate=1", "'rate=1': a noop toxic has no attribute 'rate' (it has none)"),
        ("packet_loss", "loss_rate=2", "'loss_rate=2': the value must be a probability from 0 to 1"),
        ("latency", "latency", "'latency' must be NAME=VALUE"), ("latency", "=5", "'=5' must be NAME=VALUE"),
    ]) func anAttributeThatTheTypeLacksIsRefused(_ type: String, pair: String, message: String) {
        let error = #expect(throws: ToxicAttributes.AttributeError.self) {
            try ToxicAttributes.parse([pair], ofType: type)
        }
        #expect(error?.description == message)
    }

    @Test func typesOfOtherServersAreNotChecked() throws {
        #expect(try ToxicAttributes.parse(["any=1"], ofType: "http_delay")["any"] == .integer(1))
    }
}
