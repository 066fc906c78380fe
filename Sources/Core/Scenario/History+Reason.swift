public import Determinism

extension History {
    /// The reason why a step was not performed, an action has failed, or a run was aborted.
    public enum Reason: Hashable, Sendable {
        /// How far an action had come.
        public enum Progress: Hashable, Sendable {
            /// Its time had not come.
            case planned
            /// It waited for the end of the actor's action before it.
            case waiting
            /// It had started and had not taken effect.
            case started
        }

        /// The mark that triggers the step was never set.
        case markNotSet(String)
        /// No step sets the mark that triggers the step.
        case markUnknown(String)
        /// A device did not reach a state, or not within a time from the start.
        case stateNotReached(device: String, StateCondition, within: Nanoseconds?)
        /// The script ended.
        case scriptEnded(Progress)
        /// The client of an actor was killed.
        case killed(String, Progress)
        /// The client of an actor does not run.
        case notRunning(String)
        /// The client of an actor runs.
        case runningAlready(String)
        /// The run exceeded its time limit.
        case limitExceeded(Nanoseconds)
        /// A client repeats requests and attempts to connect without a delay.
        case tooManyAttempts(String, count: Int, within: Nanoseconds)
        /// A device did not converge: in a time after its link was restored, or nothing is left that could change that.
        case notConverged(String, within: Nanoseconds?)
        /// Nothing is scheduled in virtual time, and the run has not ended.
        case nothingScheduled
        /// The run has more events than the limit, or more at one time.
        case tooManyEvents(Int, isAtOneTime: Bool)
        /// A run that is compared with another one was stopped.
        case stopped
        /// Anything else, as the world, the client or a program describes it.
        case other(String)

        /// A kind of reason. The numbers are part of the digests of runs.
        public enum Kind: UInt8, Hashable, Sendable {
            case markNotSet = 1
            case stateNotReached = 2
            case scriptEnded = 3
            case killed = 4
            case notRunning = 5
            case runningAlready = 6
            case limitExceeded = 7
            case tooManyAttempts = 8
            case notConverged = 9
            case nothingScheduled = 10
            case tooManyEvents = 11
            case other = 12
            case markUnknown = 13
            case stopped = 14
        }

        /// The kind.
        public var kind: Kind {
            switch self {
            case .markNotSet: .markNotSet
            case .markUnknown: .markUnknown
            case .stateNotReached: .stateNotReached
            case .scriptEnded: .scriptEnded
            case .killed: .killed
            case .notRunning: .notRunning
            case .runningAlready: .runningAlready
            case .limitExceeded: .limitExceeded
            case .tooManyAttempts: .tooManyAttempts
            case .notConverged: .notConverged
            case .nothingScheduled: .nothingScheduled
            case .tooManyEvents: .tooManyEvents
            case .stopped: .stopped
            case .other: .other
            }
        }
    }
}

extension History.Reason: CustomStringConvertible, EncodedValue {
    public var description: String {
        switch self {
        case .markNotSet(let mark): "mark '\(mark)' was never set"
        case .markUnknown(let mark): "no step sets mark '\(mark)'"
        case .stateNotReached(let device, let condition, let end?):
            "\(device) did not reach '\(condition)' within \(TimeFormat.seconds(end))"
        case .stateNotReached(let device, let condition, nil): "\(device) never reached '\(condition)'"
        case .scriptEnded(.planned): "the script ended at an earlier time"
        case .scriptEnded(let progress): "the script ended before \(progress.text)"
        case .killed(let name, let progress): "\(name) was killed before \(progress.text)"
        case .notRunning(let name): "\(name) is not running"
        case .runningAlready(let name): "\(name) is running already"
        case .limitExceeded(let limit): "exceeded the \(TimeFormat.short(limit)) limit"
        case .tooManyAttempts(let name, let count, let span):
            "\(name): \(count) requests and attempts to connect within \(TimeFormat.short(span)): "
                + "they are repeated without a delay"
        case .notConverged(let name, let span?):
            "\(name) did not converge within \(TimeFormat.short(span)) after its link was restored"
        case .notConverged(let name, nil):
            "\(name) has not converged, and nothing is scheduled that could change that"
        case .nothingScheduled: "internal error: the event queue is empty before the end of the run (please report)"
        case .tooManyEvents(let limit, true):
            "more than \(limit) events at one time: a client repeats without delay"
        case .tooManyEvents(let limit, false): "the run has more than \(limit) events"
        case .stopped: "the run was stopped"
        case .other(let text): text
        }
    }

    package func encode(into encoder: inout EventEncoder) {
        encoder.begin(kind.rawValue)
        switch self {
        case .markNotSet(let name), .markUnknown(let name), .notRunning(let name), .runningAlready(let name),
            .other(let name):
            encoder.add(name)
        // The condition is that of the step.
        case .stateNotReached(let device, _, let end):
            encoder.add(device)
            encoder.add(end)
        case .scriptEnded(let progress): encoder.add(progress)
        case .killed(let name, let progress):
            encoder.add(name)
            encoder.add(progress)
        case .limitExceeded(let limit): encoder.add(limit)
        case .tooManyAttempts(let name, let count, let span):
            encoder.add(name)
            encoder.add(count)
            encoder.add(span)
        case .notConverged(let name, let span):
            encoder.add(name)
            encoder.add(span)
        case .nothingScheduled, .stopped: break
        case .tooManyEvents(let limit, let isAtOneTime):
            encoder.add(limit)
            encoder.add(isAtOneTime)
        }
    }
}

extension History.Reason.Progress: NumberedCase {
    package var number: UInt8 {
        switch self {
        case .planned: 1
        case .waiting: 2
        case .started: 3
        }
    }

    package var text: String {
        switch self {
        case .planned: "its time"
        case .waiting: "the action started"
        case .started: "the action had taken effect"
        }
    }
}
