import Determinism
import NotesContract
import NotesService
import TestSupport
import Testing
import Wire

@testable import Client

/// Merges of texts, and the resolution of conflicts by policies.
@Suite struct ConflictPolicyTests {
    // MARK: Lines

    private static func text(_ generator: inout SeededGenerator, over base: [String]? = nil) -> [String] {
        guard var lines = base else {
            return (0..<Int.random(in: 0...12, using: &generator)).map { _ in
                "\(Int.random(in: 0...5, using: &generator))"
            }
        }
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            let place = Int.random(in: 0...lines.count, using: &generator)
            switch Int.random(in: 0..<3, using: &generator) {
            case 0 where place < lines.count: lines.remove(at: place)
            case 1 where place < lines.count: lines[place] = "c\(Int.random(in: 0...3, using: &generator))"
            default: lines.insert("i\(Int.random(in: 0...3, using: &generator))", at: place)
            }
        }
        return lines
    }

    @Test func aMergeOfRandomTextsKeepsTheChangesOfBothSides() {
        var merged = 0
        var conflicts = 0
        for seed in randomSeeds(2000) {
            var generator = SeededGenerator(seed: seed)
            let base = Self.text(&generator)
            let (mine, theirs) = (Self.text(&generator, over: base), Self.text(&generator, over: base))
            func merge(_ left: [String], _ right: [String]) -> String? {
                LineMerge.merge(
                    base: base.joined(separator: "\n"), mine: left.joined(separator: "\n"),
                    theirs: right.joined(separator: "\n"))
            }
            #expect(merge(base, theirs) == theirs.joined(separator: "\n"), "seed \(seed)")
            #expect(merge(mine, base) == mine.joined(separator: "\n"), "seed \(seed)")
            #expect(merge(mine, mine) == mine.joined(separator: "\n"), "seed \(seed)")
            let result = merge(mine, theirs)
            #expect(result == merge(theirs, mine), "seed \(seed)")
            guard let result else {
                conflicts += 1
                continue
            }
            merged += 1
            let lines = result.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            // No new line is lost, and a line that all three have stays.
            for side in [mine, theirs] {
                for line in Set(side).subtracting(base) { #expect(lines.contains(line), "seed \(seed): \(line)") }
            }
            for line in Set(base).intersection(mine).intersection(theirs)
            where [base, mine, theirs].allSatisfy({ $0.count { $0 == line } == 1 }) {
                #expect(lines.contains(line), "seed \(seed): \(line)")
            }
            for line in lines { #expect(mine.contains(line) || theirs.contains(line) || line.isEmpty, "seed \(seed)") }
        }
        #expect(merged > 200 && conflicts > 200)
    }

    @Test func changesOfDifferentLinesAreMerged() {
        #expect(
            LineMerge.merge(base: "milk\nbread\neggs", mine: "milk 2 l\nbread\neggs", theirs: "milk\nbread\neggs\nsalt")
                == "milk 2 l\nbread\neggs\nsalt")
        #expect(LineMerge.merge(base: "a\nb\nc", mine: "a\nx\nc", theirs: "a\ny\nc") == nil)
        #expect(LineMerge.merge(base: "", mine: "", theirs: "") == "")
        #expect(LineMerge.merge(base: "a\n", mine: "a\nb\n", theirs: "a\n") == "a\nb\n")
        #expect(LineMerge.merge(base: "a\r\nb", mine: "a\r\nb", theirs: "a\r\nc") == "a\r\nc")
    }

    /// The work of a hostile text is limited.
    @Test func textsThatDifferByTooManyLinesAreAConflict() {
        let numbers = (0..<100_000).map(String.init).joined(separator: "\n")
        let others = (100_000..<200_000).map(String.init).joined(separator: "\n")
        #expect(LineMerge.merge(base: numbers, mine: others, theirs: numbers + "\nx") == nil)
        #expect(LineMerge.merge(base: numbers, mine: "x\n" + numbers, theirs: numbers + "\ny") == "x\n\(numbers)\ny")
    }

    // MARK: Policies

    private static func note(_ title: String?, _ text: String?, second: Int) -> RecordContent {
        NoteContent(
            title: title, text: text, date: NoteDate.text(millisecondsSince1970: 1_772_352_000_000 + second * 1000)
        )
        .encoded
    }

    private static func conflict(
        _ mine: RecordContent, _ theirs: RecordContent?, base: RecordContent?, isDeleted: Bool = false
    ) -> RecordConflict {
        let record = LocalRecord(
            id: "n", base: RecordRevision("1-a", number: 1), baseContent: base, mine: mine, isDeleted: isDeleted)
        let theirs = LocalRecord.Theirs(revision: theirs.map { _ in RecordRevision("2-b", number: 2) }, content: theirs)
        return RecordConflict(record: record, theirs: theirs, areEqual: false)
    }

    @Test func policiesDecideFromTheContents() {
        let resource = NotesResource()
        let base = Self.note("Milk", "1\n2\n3", second: 0)
        let mine = Self.note("Milk", "0\n2\n3", second: 9)
        let theirs = Self.note("Oat", "1\n2\n4", second: 5)
        let edits = Self.conflict(mine, theirs, base: base)
        #expect(ConflictPolicy.ask.resolution(of: edits, resource) == nil)
        #expect(ConflictPolicy.mine.resolution(of: edits, resource) == .mine)
        #expect(ConflictPolicy.theirs.resolution(of: edits, resource) == .theirs)
        #expect(ConflictPolicy.latest.resolution(of: edits, resource) == .mine)
        #expect(ConflictPolicy.latest.resolution(of: Self.conflict(theirs, mine, base: base), resource) == .theirs)
        #expect(ConflictPolicy.latest.resolution(of: Self.conflict(mine, mine, base: base), resource) == .theirs)
        // Both changed the text; different lines of it.
        #expect(ConflictPolicy.fields.resolution(of: edits, resource) == nil)
        guard case .write(let merged)? = ConflictPolicy.lines.resolution(of: edits, resource) else {
            Issue.record("no merge")
            return
        }
        let note = NoteContent(merged)
        #expect(note.title == "Oat" && note.text == "0\n2\n4" && note.date == NoteContent(mine).date)
        // Only one side has changed each field.
        let title = Self.note("Oat", "1\n2\n3", second: 5)
        guard
            case .write(let fields)? = ConflictPolicy.fields.resolution(
                of: Self.conflict(mine, title, base: base), resource)
        else {
            Issue.record("no merge")
            return
        }
        #expect(NoteContent(fields).title == "Oat" && NoteContent(fields).text == "0\n2\n3")
        // Without a base, nothing shows which side has changed a field.
        #expect(ConflictPolicy.lines.resolution(of: Self.conflict(mine, theirs, base: nil), resource) == nil)
    }

    @Test(arguments: [ConflictPolicy.latest, .fields, .lines]) func aChangeWinsOverADeletion(policy: ConflictPolicy) {
        let note = Self.note("Milk", "1", second: 0)
        let resource = NotesResource()
        #expect(policy.resolution(of: Self.conflict(note, nil, base: note), resource) == .mine)
        #expect(policy.resolution(of: Self.conflict(note, note, base: note, isDeleted: true), resource) == .theirs)
    }

    @Test func aFunctionResolvesConflictsOfContents() {
        let world = World()
        let (phone, laptop) = (world.addDevice("A"), world.addDevice("B"))
        for device in [phone, laptop] {
            device.adapt = { configuration in
                configuration.behavior.resolveConflicts { _, mine, theirs in
                    let texts = [mine, theirs].map { NoteContent($0).text ?? "" }.sorted()
                    return texts.contains("ask") ? nil : Self.note(nil, texts.joined(separator: "+"), second: 0)
                }
            }
            device.start()
        }
        let id = phone.create(nil, "0")
        world.settle()
        laptop.sync()
        world.settle()
        for (left, right, result) in [("1", "2", "1+2"), ("3", "ask", nil)] {
            for device in [phone, laptop] { device.setInterface(isUp: false) }
            phone.edit(id, left)
            laptop.edit(id, right)
            for device in [phone, laptop] {
                device.setInterface(isUp: true)
                world.settle()
            }
            phone.sync()
            world.settle()
            if let result {
                #expect(world.server.texts == [id: result] && phone.texts == laptop.texts)
            } else {
                #expect([phone, laptop].contains { $0.rows.contains { $0.icon == .conflict } })
            }
        }
    }

    /// Two devices with a policy agree in the end, whatever happens, and leave nothing undecided but what the policy leaves.
    @Test(arguments: ConflictPolicy.allCases, [APIContract.orig, .compat, .strict])
    func noHistoryWithAPolicyEndsInDisagreement(_ policy: ConflictPolicy, _ contract: APIContract) {
        var failures = 0
        for seed in randomSeeds(2, soak: 5000) {
            var behavior = SyncBehavior()
            behavior.resolveConflicts(by: policy, of: NotesResource())
            let history = History(contract, seed: seed, behavior, resolvesConflicts: policy != .ask)
            guard let violations = history.violations(steps: 30) else { continue }
            failures += 1
            Issue.record("\(policy): \(violations)")
            if failures == 3 { break }
        }
    }

    // MARK: JSON objects

    @Test func membersOfTheServerAreNoConflict() {
        func content(_ resource: JSONResource, _ json: String) -> RecordContent {
            resource.content(json: Array(json.utf8)) ?? RecordContent([])
        }
        let plain = JSONResource(name: "x", path: "/x")
        let ignoring = JSONResource(name: "x", path: "/x", ignoring: ["updatedAt"])
        let comparing = JSONResource(name: "x", path: "/x", ignoring: ["a"], comparing: ["a", "b"])
        let left = content(plain, #"{"id":"1","revision":1,"a":1,"b":2,"updatedAt":5}"#)
        let right = content(plain, #"{"id":"1","revision":2,"updatedAt":6,"b":2,"a":1}"#)
        let other = content(plain, #"{"id":"1","revision":2,"a":1,"b":3,"updatedAt":5}"#)
        #expect(!plain.areEqual(left, right) && ignoring.areEqual(left, right) && comparing.areEqual(left, right))
        #expect(!ignoring.areEqual(left, other) && !comparing.areEqual(left, other))
        #expect(comparing.areEqual(left, content(plain, #"{"a":9,"b":2}"#)))
        #expect(
            ignoring.areEqual(RecordContent([1]), RecordContent([1])) && !ignoring.areEqual(RecordContent([1]), left))
        let fields = ConflictPolicy.fields.resolution(
            of: Self.conflict(
                content(plain, #"{"a":7,"b":2,"updatedAt":1}"#), content(plain, #"{"a":1,"b":3,"updatedAt":2}"#),
                base: content(plain, #"{"a":1,"b":2,"updatedAt":0}"#)), ignoring)
        #expect(fields == .write(content(plain, #"{"a":7,"b":3,"updatedAt":2}"#)))
        let dated = JSONResource(name: "x", path: "/x", dateKey: "at")
        let latest = ConflictPolicy.latest.resolution(
            of: Self.conflict(content(dated, #"{"at":3}"#), content(dated, #"{"at":2}"#), base: nil), dated)
        #expect(latest == .mine)
        #expect(
            ConflictPolicy.latest.resolution(of: Self.conflict(left, right, base: nil), plain) == nil)
    }

    @Test func anIndexWithWholeRecordsLeavesNothingToRead() {
        let resource = JSONResource(name: "x", path: "/x", listsContents: true)
        let body = #"[{"id":"1","revision":1,"a":1},{"id":"2","revision":2,"deleted":true},{"id":3}]"#
        let response = SyncResponse(
            status: 200, headers: [("Content-Type", "application/json")], body: Array(body.utf8))
        guard case .index(let index) = resource.reply(to: .index(cursor: nil, entityTag: nil), response).result else {
            Issue.record("no index")
            return
        }
        #expect(index.entries.map(\.content) == [RecordContent(Array(#"{"a":1}"#.utf8)), nil])
        #expect(index.unreadable.count == 1)
        var engine = SyncEngine(
            SyncEngine.Configuration(resource: resource, account: SyncAccount(user: "a", server: "h:1"), seed: 1))
        engine.started(at: .start)
        var sent: [SyncOperation] = []
        while let action = engine.takeAction() {
            switch action {
            case .send(let request):
                sent.append(request.operation)
                if sent.count == 1 { engine.responseReceived(response, to: request.id, at: .start) }
            case .commit: engine.committed(at: .start)
            default: break
            }
        }
        #expect(engine.record("1") != nil && sent.count == 1)
    }
}
