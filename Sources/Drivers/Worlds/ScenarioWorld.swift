//  Worlds: what the simulated and the live world of scenarios have in common.
//
//  Owns: the server and its notes at the start, the random identifiers of a run, the changes of users, the requests of
//  writers, faults as a link executes them, the view of a device as history events, the note of a request.
//
//  Does not own: time, sockets, stores and links (the worlds), the plan and the meaning of histories (Scenario).

public import Scenario

/// The reason why a scenario could not be run.
public struct SetupError: Error, CustomStringConvertible, Sendable {
    /// What failed, where and why.
    public let description: String

    /// Creates an error.
    public init(_ description: String) { self.description = description }
}

/// The result of a run.
public struct RunResult: Sendable {
    /// The verdict.
    public let verdict: Verdict
    /// The events.
    public let history: History
    /// The number of events that the world has executed; in real time, the number of events in the history.
    public let eventCount: Int
    /// The number of actions that the clients of each device have executed since 0 s; empty in real time.
    public let actionCounts: [String: Int]
    /// The numbers of the actions of each device that were commits, from 0; empty in real time.
    public let commitActions: [String: [Int]]
    /// The output of the user's programs that were part of the run.
    public let outputs: [ProgramOutput]

    /// Creates a result.
    public init(
        verdict: Verdict, history: History, eventCount: Int, actionCounts: [String: Int] = [:],
        commitActions: [String: [Int]] = [:], outputs: [ProgramOutput] = []
    ) {
        self.verdict = verdict
        self.history = history
        self.eventCount = eventCount
        self.actionCounts = actionCounts
        self.commitActions = commitActions
        self.outputs = outputs
    }

    /// The digest of all events. It is computed for each access.
    public var digest: UInt64 { history.digest }

    /// The digest as 16 hexadecimal digits.
    public var digestText: String {
        let text = String(digest, radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }
}
