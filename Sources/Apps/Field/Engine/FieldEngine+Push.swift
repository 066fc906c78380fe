internal import Client
internal import Determinism
internal import NotesContract
internal import Wire

/// Records and photos on their way to the server.
extension FieldEngine {
    /// Returns the records of the next push with their edits; `nil` if there are none.
    mutating func nextBatch(at now: Instant) -> [RecordKey: Int]? {
        if behavior.judgesPeriods { rejectLateRecords(at: now) }
        if !behavior.keepsIdentities { renewIdentities() }
        guard let run else { return nil }
        let pending = records.values.filter { $0.isPending && !run.skipped.contains($0.key) }
            .sorted { ($0.time, $0.key) < ($1.time, $1.key) }
        guard !pending.isEmpty else { return nil }
        let batch = pending.prefix(run.isIsolating ? 1 : Self.batchMax)
        return Dictionary(uniqueKeysWithValues: batch.map { ($0.key, $0.edit) })
    }

    /// Returns records in groups by submission period.
    func groups(of keys: [RecordKey]) -> JSONValue {
        let found = keys.compactMap { records[$0] }.sorted { ($0.time, $0.key) < ($1.time, $1.key) }
        let length = payload?.periodLength ?? 1
        return .array(
            Set(found.map(\.start)).sorted().map { start in
                var group: JSONObject = ["start": .integer(Int64(start)), "end": .integer(Int64(start + length))]
                for kind in ["answers", "notes", "photos"] {
                    let records = found.filter { $0.start == start && $0.kind == kind }
                    if !records.isEmpty { group[kind] = .array(records.map(\.sent)) }
                }
                return .object(group)
            })
    }

    /// Applies the results of a push: each record has its own.
    mutating func pushed(_ edits: [RecordKey: Int], _ results: [JSONValue]) {
        for result in results {
            guard let key = result["key"].text.flatMap({ RecordKey($0) }), let edit = edits[key],
                var record = records[key]
            else { continue }
            run?.skipped.insert(key)
            if result["status"].text == "stored" {
                needsPull = true
                commits.next.set("counter/pull", json: .integer(1))
                if !behavior.keepsPushedAnswers, case .answer = record.content {
                    remove(record)
                    continue
                }
                // The user has changed it meanwhile.
                if record.edit == edit { record.isPushed = true } else { run?.skipped.remove(key) }
            } else if behavior.results == .allOrNothing {
                run?.mustRepeat = true
                run?.skipped.formUnion(edits.keys)
                return
            } else {
                // The user has changed it meanwhile.
                if record.edit != edit {
                    run?.skipped.remove(key)
                    continue
                }
                record.rejection = result["reason"].text ?? "rejected"
            }
            store(record)
        }
        // A record without a result waits for the next run.
        run?.skipped.formUnion(edits.keys.filter { records[$0]?.edit == edits[$0] })
    }

    /// The server has rejected a whole push: its records are sent one by one, so that one does not block the others.
    mutating func pushRejected(_ edits: [RecordKey: Int], status: Int) {
        guard edits.count == 1, let key = edits.keys.first else {
            run?.isIsolating = true
            return
        }
        run?.skipped.insert(key)
        if (400...499).contains(status), var record = records[key] {
            record.rejection = "rejected"
            store(record)
        } else {
            run?.mustRepeat = true
        }
    }

    /// Stores a record of the device.
    mutating func store(_ record: FieldRecord) {
        records[record.key] = record
        commits.next.set("record/\(record.key)", json: record.stored)
    }

    /// Deletes a record of the device, and the bytes of a photo.
    mutating func remove(_ record: FieldRecord) {
        records[record.key] = nil
        commits.next.set("record/\(record.key)", nil)
        guard case .photo(_, _, let bytes, _) = record.content else { return }
        photoBytes[record.key] = nil
        for index in 0..<Self.pieceCount(bytes) { commits.next.set(Self.photoKey(record.key, index), nil) }
    }

    static func pieceCount(_ bytes: Int) -> Int { (bytes + photoPieceBytes - 1) / photoPieceBytes }

    static func photoKey(_ key: RecordKey, _ index: Int) -> String { "photo/\(key) \(10_000 + index)" }

    // MARK: Photos

    /// Returns the next request for a photo: the question whether the server has it, or its next part.
    mutating func nextPhoto() -> Activity? {
        while var run, run.failures < Self.transferFailuresMax {
            if let photo = run.photo, let record = records[photo.key], record.needsUpload {
                guard let offset = photo.offset else { return .photoState(photo.key) }
                // A photo that is missing on the device counts as done.
                guard let bytes = photoBytes[photo.key], offset < bytes.count else {
                    photoUploaded(photo.key)
                    continue
                }
                return .photoPiece(photo.key, offset: offset, count: min(Self.photoPieceBytes, bytes.count - offset))
            }
            let waiting = records.values.filter { $0.needsUpload && !run.failedPhotos.contains($0.key) }
                .map(\.key).sorted()
            guard !waiting.isEmpty else { return nil }
            run.photo = (waiting[Int(choices.integer(below: Int64(waiting.count)))], nil)
            self.run = run
        }
        return nil
    }

    /// The server has all bytes of a photo.
    mutating func photoUploaded(_ key: RecordKey) {
        run?.photo = nil
        guard var record = records[key] else { return }
        record.isUploaded = true
        store(record)
    }

    /// A request for a photo has failed; the others follow.
    mutating func photoFailed(_ key: RecordKey) {
        run?.photo = nil
        run?.failures += 1
        run?.mustRepeat = true
        run?.failedPhotos.insert(key)
    }

    mutating func photoStateReceived(_ key: RecordKey, _ response: AppResponse) {
        switch response.status {
        case 404:
            // The server does not know it any more: it is announced again.
            run?.photo = nil
            guard var record = records[key] else { return }
            record.isPushed = false
            store(record)
            wantsRun = true
        case 200...299:
            if response["Upload-Complete"] == "?1" { return photoUploaded(key) }
            run?.photo = (key, response["Upload-Offset"].flatMap { Int($0) }.map { max(0, $0) } ?? 0)
        default: photoFailed(key)
        }
    }

    mutating func photoPieceReceived(_ key: RecordKey, end: Int, _ response: AppResponse) {
        switch response.status {
        case 200...299:
            if end >= photoBytes[key]?.count ?? 0 { photoUploaded(key) } else { run?.photo = (key, end) }
        // Another offset, or the wrong digest after the last part.
        case 409:
            run?.photo = (key, nil)
            run?.failures += 1
        default: photoFailed(key)
        }
    }

    // MARK: Before a push

    /// Rejects answers whose period is over by the device's clock.
    private mutating func rejectLateRecords(at now: Instant) {
        guard let payload else { return }
        let deviceTime = clock.milliseconds(at: now)
        for var record in records.values where record.isPending {
            guard case .answer = record.content, deviceTime > record.start + payload.periodLength else { continue }
            record.rejection = "late"
            store(record)
        }
    }

    /// Gives the notes that will be sent other identities.
    private mutating func renewIdentities() {
        for var record in records.values.filter({ $0.isPending }).sorted(by: { $0.key < $1.key }) {
            guard case .note = record.content, let key = newKey() else { continue }
            remove(record)
            record.key = key
            store(record)
        }
    }

    /// Returns a new identity.
    mutating func newKey() -> RecordKey? {
        RecordKey("n-\(String(ids.next(), radix: 16))\(String(ids.next(), radix: 16))")
    }
}
