import Determinism
import Scenario
import Testing
import Worlds

/// Push notices as a value that follows from the events of a run.
@Suite struct PushNoticesTests {
    /// A run with a device whose service has results of the operations whose names begin with `r`.
    private struct Run {
        var recorder = HistoryRecorder()
        var pushes = PushNotices { $0.hasPrefix("r") ? "Result of \($0)" : nil }

        init() {
            record(.phase(.script))
            record(.started(device: "N"))
            if let state = recorder.view([], outbox: 1, of: "N") { record(state) }
        }

        mutating func record(_ event: History.Event) {
            recorder.record(event, at: .start)
            for event in pushes.apply(event, &recorder) { record(event) }
        }

        mutating func request(_ id: Int, _ operation: String) {
            record(.request(id, actor: "N", method: "POST", row: nil, key: "\"\(operation)\"", bodyDigest: 0))
        }

        /// The texts of the notices.
        var notices: [String] {
            recorder.history.entries.compactMap {
                if case .notice("N", .pushed(let text)) = $0.event { text } else { nil }
            }
        }

        /// The fields of the device's last state.
        var fields: [String] {
            for entry in recorder.history.entries.reversed() {
                if case .device("N", let state) = entry.event { return state.screen.fields ?? [] }
            }
            return []
        }
    }

    @Test func aResultThatTheAppHasNotReceivedIsShownWhenItEnds() {
        var run = Run()
        run.request(1, "r1")
        run.record(.serverResponded(1, status: 201))
        #expect(run.notices.isEmpty)
        run.record(.stopped(device: "N"))
        #expect(run.notices == ["Result of r1"] && run.fields == ["push-notice=Result of r1"])
        // Once.
        run.record(.started(device: "N"))
        run.record(.stopped(device: "N"))
        #expect(run.notices == ["Result of r1"])
    }

    @Test func aResultThatArrivesWhileTheAppIsClosedIsShownAtOnce() {
        var run = Run()
        run.request(1, "r1")
        run.record(.stopped(device: "N"))
        run.record(.failed(1))
        run.record(.serverResponded(1, status: 422))
        #expect(run.notices == ["Result of r1"])
    }

    @Test func aResultThatTheAppHasReceivedIsNotShown() {
        var run = Run()
        run.request(1, "r1")
        run.record(.serverResponded(1, status: 201))
        run.record(.failed(1))
        // Another attempt with the same operation.
        run.request(2, "r1")
        run.record(.serverResponded(2, status: 201))
        run.record(.responseReceived(2, status: 201))
        run.record(.stopped(device: "N"))
        #expect(run.notices.isEmpty && run.fields.isEmpty)
    }

    @Test func anOperationWithoutAResultHasNoNotice() {
        var run = Run()
        run.request(1, "x1")
        run.record(.serverResponded(1, status: 503))
        run.request(2, "r2")
        run.record(.stopped(device: "N"))
        #expect(run.notices.isEmpty)
    }
}
