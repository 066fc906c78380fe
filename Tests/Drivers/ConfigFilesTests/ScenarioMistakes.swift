/// Typical mistakes in scenario files: a change of a valid file, in which `§` marks the expected location.
enum ScenarioMistakes {
    struct Mistake: Sendable, CustomStringConvertible {
        let original: String
        let changed: String
        /// A part of the expected message.
        let message: String
        /// Whether a JSON Schema can know the mistake.
        let isInSchema: Bool

        init(_ original: String, _ changed: String, _ message: String, schema isInSchema: Bool = true) {
            self.original = original
            self.changed = changed
            self.message = message
            self.isInSchema = isInSchema
        }

        var description: String { changed }

        /// The text with the mistake, and its expected line and column.
        var applied: (text: String, line: Int, column: Int) {
            let marked = ScenarioMistakes.valid.replacing(original, with: changed, maxReplacements: 1)
            let before = marked.prefix { $0 != "§" }
            let line = before.split(separator: "\n", omittingEmptySubsequences: false)
            return (marked.replacing("§", with: ""), line.count, (line.last?.count ?? 0) + 1)
        }
    }

    static let valid = """
        scenario: 1
        name: base
        limit: 2m
        server:
          contract: compat
          notes:
            n1: { title: Milk, text: two, revision: 2 }
        devices:
          A: { user: ada, starts: synced }
          B: { user: ada }
        writers:
          W: { user: ada }
        network:
          A:
            0s: 3g
            3s: { link: 100-loss, signalled: false }
            18s: { flap: [{ edge: 4s }, { 100-loss: 1s }], jitter: 50% }
          B: { 0s: wifi }
        faults:
          - { request: PUT n1, nth: 1, to: A, point: before-response, then: reset }
        steps:
          - { at: 4s, W: { edit: n1, text: "3 l" } }
          - { at: 6s, A: { edit: n1, text: "4 l" } }
          - { when: { A: { row: n1, icon: conflict } }, within: 40s, mark: shown }
          - { after: shown, delay: 6s, A: { resolve: n1, text: "5 l" }, mark: decided }
        workload:
          - { from: 1s, to: 10s, every: 2s, by: [B], mix: { create: 1 } }
        expect:
          traffic:
            - { request: PUT n1, from: A, between: [shown, decided], count: 0 }
          always:
            - A: { row: n1, title: Milk, since: 7s, until: decided }
          sometimes:
            - { any: { icon: conflict } }
          eventually:
            - { by: 35s, A: { row: n1, icon: conflict } }
          finally:
            server: { n1: { revision: 4, text: "5 l" } }
            agree: [A, server]
          thresholds:
            save-to-screen: { p95: 50ms }
        """

    static let all: [Mistake] = [
        // The file.
        .init("limit:", "§limti:", "unknown key 'limti' in the scenario; did you mean 'limit'?"),
        .init("devices:", "§clients:", "unknown key 'clients' in the scenario; did you mean 'devices'?"),
        .init("expect:", "§assertions:", "unknown key 'assertions' in the scenario; did you mean 'expect'?"),
        .init("scenario: 1", "scenario: §2", "version '2' is not supported"),
        .init("name: base", "name: §Base Case", "'Base Case' is not kebab-case"),
        .init("limit: 2m", "limit: §2 minuets", "unknown unit 'minuets'"),
        .init("limit: 2m", "limit: §120", "'120' has no unit"),
        .init("limit: 2m", "limit: 2m\nseed: §soon", "'soon': expected a whole number, or commit"),
        .init("limit: 2m", "limit: 2m\ninvariants: { drop: [§I99] }", "no invariant is called 'I99'"),
        .init("limit: 2m", "limit: 2m\nexplore: { seeds: 5, vary: [§netwrok] }", "did you mean 'network'?"),
        .init("limit: 2m", "limit: §$duration", "no parameter is called 'duration'", schema: false),
        .init("limit: 2m", "limit: 2m\npolicy: { §longest: 2s }", "did you mean 'longest-delay'?"),
        .init(
            "limit: 2m", "limit: 2m\npolicy: { longest-delay: §200ms }", "expected at least 'first-delay', 1 s",
            schema: false),
        .init(
            "limit: 2m", "limit: 2m\npolicy: { poll: §1ms }", "'poll': expected a time of at least 10 ms",
            schema: false),
        // Server, devices and networks.
        .init("starts: synced", "restarts: §4", "'4' has no unit"),
        .init("starts: synced", "restored: §maybe", "'maybe': expected true or false"),
        .init("contract: compat", "contract: §compta", "expected compat, orig or strict; did you mean 'compat'?"),
        .init("{ title: Milk", "{ §titel: Milk", "unknown key 'titel' in a note; did you mean 'title'?"),
        .init("revision: 2", "revision: §0", "expected a whole number from 1"),
        .init("revision: 2", "revision: §two", "'two': expected a whole number from 1"),
        .init("revision: 2 }", "revision: 2 }\n    §any: { title: x }", "'any' has another meaning"),
        .init("text: two", "text: §~", "expected a text; the empty text is ''"),
        .init("  B: {", "  §b: {", "begins with a capital letter"),
        .init("  B: { user: ada }", "  B: §{ starts: synced }", "a device needs 'user'"),
        .init("starts: synced", "starts: §sync", "did you mean 'synced'?"),
        .init(
            "starts: synced", "client: §legasy",
            "'legasy': expected reference, legacy, expense, reader or field; did you mean 'legacy'?"),
        .init("0s: 3g", "0s: §3gg", "no profile is called '3gg'; did you mean '3g'", schema: false),
        .init("    0s: 3g", "    §1s: 3g", "the first entry must be at 0s", schema: false),
        .init("    0s: 3g", "    §0: 3g", "'0' has no unit"),
        .init("18s: {", "§2s: {", "expected a time later than the entry before", schema: false),
        .init("    0s: 3g", "    0s: 3g\n§\t1s: edge", "a tab in the indentation"),
        .init("signalled: false", "signalled: §maybe", "'maybe': expected true, false or sometimes"),
        .init("signalled: false", "§signaled: false", "did you mean 'signalled'?"),
        .init("jitter: 50%", "jitter: §50", "'50' has no unit; expected a percentage"),
        .init("{ edge: 4s }", "{ edge: §4 }", "'4' has no unit"),
        // Faults.
        .init("request: PUT n1, nth", "request: §put n1, nth", "methods are written in capitals"),
        .init(
            "request: PUT n1, nth", "request: §PUT n7, nth", "no note is called 'n7'; did you mean 'n1'?", schema: false
        ),
        .init("nth: 1", "nth: §0", "'0': expected a whole number from 1"),
        .init("nth: 1", "nth: 1, probability: §2%", "a fault has either 'nth' or 'probability'", schema: false),
        .init("nth: 1", "times: §{ min: 3, max: 2 }", "'min' is greater than 'max'", schema: false),
        .init("to: A, point", "to: §C, point", "no device is called 'C'", schema: false),
        .init("point: before-response", "point: §befor-response", "did you mean 'before-response'"),
        .init("then: reset", "then: §rst", "did you mean 'reset'?"),
        .init("then: reset", "then: { §wait: 5s }", "did you mean 'delay'?"),
        .init("then: reset", "then: { respond: { status: §99 } }", "expected a whole number from 200 to 599"),
        .init(
            "then: reset", "bytes: §5, then: reset", "bytes applies to mid-request and mid-response only", schema: false
        ),
        .init(
            "then: reset", "side: §client, then: { delay: 1s }", "side applies to reset, close and stall", schema: false
        ),
        .init("then: reset", "side: §clint, then: reset", "did you mean 'client'?"),
        .init("request: PUT n1, nth", "request: §BREW n1, nth", "expected a request such as 'PUT n1'"),
        // Steps and workload.
        .init("W: { edit", "W: { §update", "unknown key 'update' in an action; did you mean 'edit'?"),
        .init("A: { edit: n1, text: \"4 l\" }", "A: { §remove: n1 }", "did you mean 'delete'?"),
        .init("A: { edit: n1, text: \"4 l\" }", "§C: { sync: now }", "unknown key 'C' in a step", schema: false),
        .init("A: { edit: n1, text: \"4 l\" }", "A: §{ edit: n1 }", "'edit' needs 'title' or 'text'", schema: false),
        .init("A: { edit: n1, text: \"4 l\" }", "A: { sync: §later }", "'later': expected now"),
        .init("A: { edit: n1, text: \"4 l\" }", "A: §{ sync: now, kill: now }", "expected one of create, edit"),
        .init("A: { edit: n1, text: \"4 l\" }", "A: { clock: { wall: §6h } }", "'6h' has no sign"),
        .init("{ at: 6s, A", "§{ A", "a step needs one of 'at', 'after' and 'when'"),
        .init("{ at: 6s, A", "{ at: 6s, delay: §1s, A", "'delay' has no effect without 'after'", schema: false),
        .init("at: 6s", "at: §6", "'6' has no unit"),
        .init("after: shown", "after: §shwon", "no mark is called 'shwon'; did you mean 'shown'?", schema: false),
        .init("mark: decided", "mark: §Decided", "expected a mark of lower-case"),
        .init("mark: decided", "mark: §shown", "mark 'shown' is set twice", schema: false),
        .init("resolve: n1, text: \"5 l\"", "resolve: n1, with: §ours", "expected theirs, mine, write or delete"),
        .init("within: 40s", "within: §forty", "'forty' is not a number with a unit"),
        .init("every: 2s", "every: §0s", "'every' must not be zero", schema: false),
        .init("by: [B]", "by: [§D]", "no device or writer is called 'D'", schema: false),
        .init("mix: { create: 1 }", "mix: { §add: 1 }", "did you mean 'create'?"),
        .init("mix: { create: 1 }", "mix: { resolve: §1 }", "'resolve' needs 'when'", schema: false),
        // Tokens, attempts, screens and the acts that change no note.
        .init("contract: compat", "contract: compat\n  token-life: §60", "'60' has no unit"),
        .init("contract: compat", "contract: compat\n  token-life: §0s", "a time of at least 1 s", schema: false),
        .init("contract: compat", "contract: compat\n  §token-live: 60s", "did you mean 'token-life'?"),
        .init(
            "contract: compat", "contract: orig\n  token-life: §60s", "only the built-in server has tokens",
            schema: false),
        .init("decided], count: 0", "decided], attempts: §0", "'attempts' needs 'request: any'", schema: false),
        .init("decided], count: 0", "decided], attempts: §none", "'none': expected a number, or {min: .., max: ..}"),
        .init("A: { edit: n1, text: \"4 l\" }", "A: { open: §n7 }", "did you mean 'n1'?", schema: false),
        .init("A: { edit: n1, text: \"4 l\" }", "A: { pin: §list }", "no note is called 'list'", schema: false),
        .init("A: { edit: n1, text: \"4 l\" }", "A: { upgrade: §two }", "expected a whole number from 1"),
        .init(
            "A: { edit: n1, text: \"4 l\" }", "A: { upgrade: §3 }", "has no version 3; it has 1 and 2", schema: false),
        .init(
            "A: { edit: n1, text: \"4 l\" }", "A: { call: §dismis, with: { note: n1 } }", "did you mean 'dismiss'?",
            schema: false),
        .init("A: { edit: n1, text: \"4 l\" }", "A: { call: §dismiss }", "'dismiss' needs its note", schema: false),
        .init("{ row: n1, title: Milk, since", "{ screen: §lst, since", "did you mean 'list'?", schema: false),
        .init("{ row: n1, title: Milk, since", "{ control: §dismis, since", "did you mean 'dismiss'?", schema: false),
        .init("{ row: n1, title: Milk, since", "{ §tost: none, since", "did you mean 'toast'"),
        .init(
            "{ row: n1, title: Milk, since", "{ row: n1, opacity: §half, since", "'half': expected a number from 0 to 1"
        ),
        .init("{ row: n1, title: Milk, since", "{ row: n1, strike: §maybe, since", "'maybe': expected true or false"),
        .init("{ row: n1, title: Milk, since", "{ opacity: §1, since", "'opacity' needs 'row'", schema: false),
        // Expectations.
        .init("count: 0 }", "count: §none }", "'none': expected a number, or {min: .., max: ..}"),
        .init("count: 0 }", "§cuont: 0 }", "did you mean 'count'?"),
        .init("between: [shown, decided]", "between: §[shown]", "'between' needs two times or marks"),
        .init("between: [shown, decided]", "between: [shown, §decide]", "did you mean 'decided'?", schema: false),
        .init("count: 0 }", "responses: [§timeout] }", "expected a status, 2xx, lost or none"),
        .init("from: A, between", "from: §a, between", "no device or writer is called 'a'; did you mean 'A'"),
        .init("icon: conflict } }, within", "icon: §conflicted } }, within", "did you mean 'conflict'?"),
        .init("title: Milk, since", "§titel: Milk, since", "did you mean 'title'?"),
        .init("row: n1, title: Milk, since", "§note: n1, title: Milk, since", "did you mean 'row'?"),
        .init("since: 7s", "since: §7", "'7' has no unit"),
        .init("{ by: 35s, A", "§{ A", "'eventually' needs 'by', or 'after' and 'within'"),
        .init("agree: [A, server]", "agree: §[A]", "'agree' needs at least two names"),
        .init("agree: [A, server]", "agree: [A, §C]", "no device is called 'C'", schema: false),
        .init(
            "save-to-screen:", "§save-to-sceen:", "no metric is called 'save-to-sceen'; did you mean 'save-to-screen'"),
        .init("p95: 50ms", "p95: §50", "'50' has no unit", schema: false),
        .init("p95: 50ms", "§p96: 50ms", "unknown key 'p96' in a threshold"),
    ]
}
