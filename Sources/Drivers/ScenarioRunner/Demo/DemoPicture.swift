internal import CommandSupport
internal import Determinism
internal import Scenario

/// The story of the demonstration as a moving picture: an SVG file whose style sheet shows each part at its time, without
/// scripts. Each value of the picture comes from the events of a run.
struct DemoPicture {
    /// A part of the story, from a time of the run on.
    struct Step {
        let start: Nanoseconds
        let name: String
        let line: String
        let see: String
    }

    static let steps = [
        Step(
            start: .zero, name: "As usual", line: "Ada's phone and her tablet share their notes. Ada adds one.",
            see: "The tablet has it a moment later."),
        Step(
            start: .seconds(9), name: "The tunnel", line: "The phone is in a tunnel. Ada edits the milk anyway.",
            see: "Her text is there at once; a mark says that it waits."),
        Step(
            start: .seconds(20), name: "Both edit", line: "Meanwhile the same note is edited on the tablet.",
            see: "The server has the tablet's text; the phone does not know it yet."),
        Step(
            start: .seconds(28), name: "The conflict",
            line: "The phone is back, on slow 2G. The server refuses its old edit (409 Conflict).",
            see: "Nobody is overwritten: the phone shows both texts."),
        Step(
            start: .seconds(40), name: "The decision", line: "Ada joins both texts, and her phone saves the note.",
            see: "The tablet has her decision."),
        Step(
            start: .seconds(49), name: "A lost response",
            line: "The server saves Ada's tickets, and the response is lost while she types on.",
            see: "Her phone sends the note again with the same ID: there is one note, with her last words."),
    ]

    /// A device with its place in the picture.
    private struct Place {
        let name: String
        let device: String
        let title: String
        let left: Int
        /// The ends of its link: at the device, and at the server.
        let link: (device: Int, server: Int)
    }

    private static let places = [
        Place(name: "A", device: "phone", title: "Ada's phone", left: 20, link: (262, 392)),
        Place(name: "B", device: "tablet", title: "Ada's tablet", left: 710, link: (698, 568)),
    ]
    private static let linkNames = [
        "wifi": "Wi-Fi", "3g": "3G", "edge": "slow 2G (EDGE)", "100-loss": "tunnel: no network",
    ]
    /// The time for which the last moment is shown.
    private static let restMilliseconds = 4000

    /// A message between a device and the server: a request or a response.
    private struct Message {
        let place: Place
        let isResponse: Bool
        let isLost: Bool
        let label: String
        let style: String
        let start: Nanoseconds
        let end: Nanoseconds
    }

    private let length: Int
    /// The times of the run at which the picture changes, with their times in the picture.
    private let moments: [(time: Nanoseconds, milliseconds: Int)]
    private var styles: [String] = []
    private var body: [String] = []

    /// Returns the picture of a run of the demonstration.
    static func svg(of history: History, _ scenario: Scenario) -> String {
        let story = Story(history, scenario)
        var picture = DemoPicture(story)
        for (index, step) in steps.enumerated() { picture.addCaption(step, index) }
        for place in places {
            picture.addDevice(place, story.states[place.name] ?? [])
            picture.addLink(place, story.links[place.name] ?? [])
        }
        picture.addServer(story.server)
        for message in story.messages { picture.add(message) }
        return picture.document
    }

    // MARK: The story

    /// What the picture shows of a run.
    private struct Story {
        var states: [String: [(time: Nanoseconds, state: History.DeviceState)]] = [:]
        var links: [String: [(time: Nanoseconds, name: String)]] = [:]
        /// The notes of the server with their revisions, in the order of their names.
        var server: [(time: Nanoseconds, notes: [(title: String, revision: Int)])] = []
        var messages: [Message] = []
        var times: Set<Nanoseconds> = [.zero]

        init(_ history: History, _ scenario: Scenario) {
            let end = scenario.restoreAt ?? scenario.limit
            var titles: [String: String] = [:]
            var revisions: [String: Int] = [:]
            for note in scenario.notes { revisions[note.row] = note.revision }
            var requests: [Int: (place: Place, note: String, isWrite: Bool, sent: Nanoseconds)] = [:]
            var responses: [Int: (status: Int, time: Nanoseconds)] = [:]
            for entry in history.entries where entry.time <= end {
                let time = entry.time
                switch entry.event {
                case .network(let device, let link, _): links[device, default: []].append((time, link))
                case .device(let device, let state):
                    for row in state.rows { titles[row.name] = row.title }
                    states[device, default: []].append((time, state))
                case .request(let id, let actor, let method, let row?, _, _, _):
                    guard let place = places.first(where: { $0.name == actor }) else { continue }
                    requests[id] = (place, row, method != "GET", time)
                    continue
                case .arrived(let id):
                    guard let (place, note, isWrite, sent) = requests[id] else { continue }
                    messages.append(
                        Message(
                            place: place, isResponse: false, isLost: false,
                            label: "\(isWrite ? "save" : "get") \(titles[note] ?? note)", style: "dot", start: sent,
                            end: time))
                    times.insert(sent)
                case .serverResponded(let id, let status, _, let revision):
                    guard let request = requests[id] else { continue }
                    responses[id] = (status, time)
                    if request.isWrite, status < 300, let revision { revisions[request.note] = revision }
                case .responseReceived(let id, _), .failed(let id):
                    guard let request = requests[id], let response = responses[id] else { continue }
                    let isLost = if case .failed = entry.event { true } else { false }
                    let isConflict = response.status == 409
                    let text = request.isWrite ? "saved" : titles[request.note] ?? request.note
                    messages.append(
                        Message(
                            place: request.place, isResponse: true, isLost: isLost,
                            label: isLost ? "response lost" : isConflict ? "409 conflict" : text,
                            style: isLost ? "lost" : isConflict ? "conflict" : "answer", start: response.time, end: time
                        ))
                default: continue
                }
                times.insert(time)
                server.append((time, revisions.sorted { $0.key < $1.key }.map { (titles[$0.key] ?? $0.key, $0.value) }))
            }
        }
    }

    private init(_ story: Story) {
        var moments: [(time: Nanoseconds, milliseconds: Int)] = []
        var shown = 0
        for time in story.times.sorted() {
            // Messages on a fast link would not be seen, and pauses would be long.
            if let last = moments.last { shown += min(550 + Int((time - last.time).count / 1_000_000) * 7 / 10, 2600) }
            moments.append((time, shown))
        }
        self.moments = moments
        length = shown + Self.restMilliseconds
    }

    /// Returns the time in the picture of the first moment at or after a time of the run.
    private func shown(_ time: Nanoseconds) -> Int { moments.first { $0.time >= time }?.milliseconds ?? length }

    // MARK: Parts

    private mutating func addCaption(_ step: Step, _ index: Int) {
        let start = shown(step.start)
        let end = index + 1 < Self.steps.count ? shown(Self.steps[index + 1].start) : length
        let left = 20 + 155 * index
        body.append(Self.text("\(index + 1) \(step.name)", left, 414, "soft"))
        add(
            Self.text("\(index + 1)/\(Self.steps.count) \(step.name)", 20, 34, "big")
                + Self.text(step.line, 20, 60, "line")
                + Self.text(step.see, 20, 82, "soft line")
                + "<rect class=\"now\" x=\"\(left)\" y=\"421\" width=\"140\" height=\"3\"/>",
            from: start, to: end)
    }

    private mutating func addDevice(_ place: Place, _ states: [(time: Nanoseconds, state: History.DeviceState)]) {
        body.append("<rect class=\"device\" x=\"\(place.left)\" y=\"104\" width=\"230\" height=\"280\" rx=\"14\"/>")
        body.append(Self.text(place.title, place.left + 16, 132, "bold"))
        add(states.map { (shown($0.time), Self.screen($0.state, place)) })
    }

    /// Returns the notes of a device, and what it has not sent.
    private static func screen(_ state: History.DeviceState, _ place: Place) -> String {
        let left = place.left + 12
        var top = 146
        var text = ""
        for row in state.rows.sorted(by: { $0.name < $1.name }) {
            let isConflict = row.icon == .conflict
            let other = row.kept.first { $0 != row.text && $0 != row.title }
            let height = isConflict ? 78 : 56
            text +=
                "<rect class=\"card\(isConflict ? " conflicting" : "")\" x=\"\(left)\" y=\"\(top)\" width=\"206\" "
                + "height=\"\(height)\" rx=\"8\"/>"
            text += Self.text(row.title ?? "", left + 12, top + 22, "bold")
            let mark = isConflict ? "\u{25C6} conflict" : row.icon == .upload ? "\u{2191} waiting" : ""
            text += Self.text(mark, left + 194, top + 22, "right \(isConflict ? "conflict" : "dot")")
            let mine = row.text ?? ""
            text += Self.text(isConflict ? "\(place.device): \(mine)" : mine, left + 12, top + 44)
            if isConflict, let other {
                let others = places.first { $0.name != place.name }?.device ?? ""
                text += Self.text("\(others): \(other)", left + 12, top + 66)
            }
            top += height + 8
        }
        let conflicts = state.rows.count { $0.icon == .conflict }
        let status =
            conflicts > 0
            ? "Ada has to decide"
            : state.outbox > 0 ? "\(TextTable.count(state.outbox, "change")) to send" : "everything sent"
        return text + Self.text(status, place.left + 16, 370, "soft")
    }

    private mutating func addLink(_ place: Place, _ links: [(time: Nanoseconds, name: String)]) {
        let (left, right) = (min(place.link.device, place.link.server), max(place.link.device, place.link.server))
        add(
            links.map { link in
                let name = Self.linkNames[link.name] ?? link.name
                let style = link.name == "100-loss" ? "wire down" : link.name == "edge" ? "wire slow" : "wire"
                return (
                    shown(link.time),
                    "<line class=\"\(style)\" x1=\"\(left)\" y1=\"240\" x2=\"\(right)\" y2=\"240\"/>"
                        + Self.text(name, (left + right) / 2, 288, "middle soft")
                )
            })
    }

    private mutating func addServer(_ server: [(time: Nanoseconds, notes: [(title: String, revision: Int)])]) {
        body.append("<rect class=\"device\" x=\"404\" y=\"164\" width=\"152\" height=\"152\" rx=\"14\"/>")
        body.append(Self.text("Server", 420, 192, "bold"))
        add(
            server.map { moment in
                let lines = moment.notes.enumerated().map { index, note in
                    Self.text(note.title, 420, 220 + 26 * index)
                        + Self.text("revision \(note.revision)", 540, 220 + 26 * index, "right soft")
                }
                return (shown(moment.time), lines.joined())
            })
    }

    private mutating func add(_ message: Message) {
        let (start, end) = (shown(message.start), shown(message.end))
        let link = message.place.link
        let (from, to) = message.isResponse ? (link.server, link.device) : (link.device, link.server)
        let middle = (from + to) / 2
        let label = Self.text(message.label, middle, message.isResponse ? 264 : 228, "middle \(message.style)")
        let name = "m\(styles.count)"
        let way = (message.isLost ? middle : to) - from
        styles.append(
            "@keyframes \(name){0%,\(percent(start)){transform:none}\(percent(end)),to{transform:translateX(\(way)px)}}"
        )
        let dot =
            "<circle class=\"\(message.style)\" cx=\"\(from)\" cy=\"240\" r=\"7\" style=\"animation:\(name) \(length)ms "
            + "linear infinite\"/>"
        add(label + dot, from: start, to: end)
        guard message.isLost else { return }
        let cross = "M\(middle - 7) 233l14 14m0-14l-14 14"
        add(label + "<path class=\"lost\" d=\"\(cross)\"/>", from: end, to: min(end + 1500, length))
    }

    /// Adds contents each of which is shown until the next one.
    private mutating func add(_ contents: [(start: Int, svg: String)]) {
        var distinct: [(start: Int, svg: String)] = []
        for content in contents where distinct.last?.svg != content.svg {
            // The last of several contents of one moment counts.
            if distinct.last?.start == content.start { distinct.removeLast() }
            if distinct.last?.svg != content.svg { distinct.append(content) }
        }
        for (index, content) in distinct.enumerated() {
            add(content.svg, from: content.start, to: index + 1 < distinct.count ? distinct[index + 1].start : length)
        }
    }

    /// Adds a content that is shown from `start` to `end`, in milliseconds of the picture.
    private mutating func add(_ svg: String, from start: Int, to end: Int) {
        guard start < end else { return }
        let name = "k\(styles.count)"
        let hidden = start == 0 ? "" : "0%{opacity:0}"
        let gone = end < length ? "\(percent(end)){opacity:0}" : ""
        styles.append("@keyframes \(name){\(hidden)\(percent(start)){opacity:1}\(gone)}")
        // Without motion, the picture is that of the conflict.
        let still = shown(Self.steps[4].start) - 1
        let classes = (start..<end).contains(still) ? "part still" : "part"
        body.append("<g class=\"\(classes)\" style=\"animation-name:\(name)\">\(svg)</g>")
    }

    private func percent(_ milliseconds: Int) -> String {
        let hundredths = milliseconds * 10_000 / length
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)%"
    }

    private static func text(_ text: String, _ left: Int, _ base: Int, _ style: String = "") -> String {
        if text.isEmpty { return "" }
        let named = style.isEmpty ? "" : " class=\"\(style)\""
        return "<text\(named) x=\"\(left)\" y=\"\(base)\">\(JUnitReport.escaped(text))</text>"
    }

    // MARK: The document

    private var document: String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 432" width="960" height="432" role="img" aria-labelledby="title">
        <title id="title">Two devices on a bad network: \(Self.steps.map(\.name).joined(separator: ", "))</title>
        <style>
        \(Self.sheet)
        .part{opacity:0;animation:\(length)ms step-end infinite}
        @media(prefers-reduced-motion:reduce){.part,.part *{animation:none!important}.still{opacity:1}circle{display:none}}
        \(styles.joined(separator: "\n"))
        </style>
        <rect class="page" width="960" height="432" rx="12"/>
        \(body.joined(separator: "\n"))
        </svg>

        """
    }

    private static let sheet = """
        text{font:15px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#1d2530}
        .big{font-size:20px;font-weight:700}
        .bold{font-weight:600}
        .line{font-size:16px}
        .soft{fill:#566172}
        .right{text-anchor:end;font-size:13px}
        .middle{text-anchor:middle;font-size:13px}
        .page{fill:#eef1f5}
        .device{fill:#fbfcfd;stroke:#c3cad4}
        .card{fill:#eef1f5}
        .conflicting{stroke:#b45309;stroke-width:2}
        .now,.dot{fill:#1d5fd0}
        .answer{fill:#187a3c}
        .conflict{fill:#b45309}
        .lost{fill:#c0262d}
        path.lost{stroke:#c0262d;stroke-width:4}
        .wire{stroke:#8b96a5;stroke-width:5;stroke-linecap:round}
        .slow{stroke-width:2}
        .down{stroke:#c0262d;stroke-width:3;stroke-dasharray:2 9}
        @media(prefers-color-scheme:dark){
        text{fill:#e6eaf0}
        .soft{fill:#a3adbb}
        .page{fill:#10151b}
        .device{fill:#1a212a;stroke:#3a4552}
        .card{fill:#262f3a}
        .now,.dot{fill:#7fb0ff}
        .answer{fill:#63c987}
        .conflict{fill:#f2a94b}
        .conflicting{stroke:#f2a94b}
        .lost{fill:#ff7b80}
        path.lost,.down{stroke:#ff7b80}
        }
        """
}
