public import Client
public import Determinism
internal import NotesContract
internal import Wire

/// Files of the payload: one transfer at a time, in random order.
extension FieldEngine {
    /// Returns the next request for a file: the one that the user wants, the one that has begun, or one chosen at random;
    /// `nil` if nothing is missing, or the run ends.
    mutating func nextFile(at now: Instant) -> Activity? {
        guard var run, run.failures < Self.transferFailuresMax else { return nil }
        if let wanted = wantedFile, files[wanted]?.isPulled == false {
            run.file = wanted
        } else {
            wantedFile = nil
        }
        let missing = missingFiles
        if run.file.map({ !missing.contains($0) }) ?? true {
            guard !missing.isEmpty else { return nil }
            run.file = missing[Int(choices.integer(below: Int64(missing.count)))]
        }
        self.run = run
        guard let id = run.file, let file = files[id], let bytes = requestBytes(at: now) else { return nil }
        return .file(id, range: file.nextRange(of: bytes))
    }

    /// Returns the size of the next request for a file: small at first, later as much as arrives before the run stops, at
    /// the rate of the last request; `nil` if that is less than a piece.
    private func requestBytes(at now: Instant) -> Int? {
        guard let last = run?.lastTransfer else { return StoredFile.pieceBytes }
        guard let stopAt = run?.stopAt else { return Self.fileRequestBytesMax }
        // A part of the time is kept back, because rates vary.
        let left = max(.zero, stopAt - now).count / 5 * 4
        let bytes = Int64(last.bytes).scaledSaturating(by: left, over: max(1, last.time.count))
        return bytes < Int64(StoredFile.pieceBytes) ? nil : min(Self.fileRequestBytesMax, Int(bytes))
    }

    /// Returns a request for a file that is not in flight.
    mutating func nextParallelFile() -> Activity? {
        guard let run, run.failures < Self.transferFailuresMax, exchanges.count < behavior.filesAtOnce else {
            return nil
        }
        let inFlight = exchanges.values.compactMap { if case .file(let id, _) = $0 { id } else { nil } }
        guard let id = missingFiles.first(where: { !inFlight.contains($0) }), let file = files[id] else { return nil }
        return .file(id, range: file.nextRange(of: Self.fileRequestBytesMax))
    }

    public mutating func pieceReceived(_ piece: AppResponse, to number: Int, at now: Instant) {
        guard case .file(let id, let range)? = exchanges[number], let file = files[id],
            Self.isPart(piece, of: file, from: range.lowerBound)
        else { return }
        let count = arrived[number] ?? 0
        let bytes = piece.body.prefix(range.count - count)
        arrived[number] = count + bytes.count
        buffers[number, default: []] += bytes
        guard buffers[number]?.count ?? 0 >= StoredFile.pieceBytes else { return }
        keepBytes(of: number, file: id)
        pump(at: now)
    }

    /// Returns whether a response has the bytes of a file from an offset on.
    private static func isPart(_ response: AppResponse, of file: StoredFile, from offset: Int) -> Bool {
        guard response["ETag"] == file.entityTag else { return false }
        if response.status == 200 { return offset == 0 }
        return response.status == 206 && response["Content-Range"]?.hasPrefix("bytes \(offset)-") == true
    }

    /// Keeps what has arrived of a file.
    mutating func keepBytes(of number: Int, file id: String) {
        guard var file = files[id], let bytes = buffers.removeValue(forKey: number), !bytes.isEmpty else { return }
        for (key, piece) in file.append(bytes) { commits.next.set(key, piece) }
        file.hasFailed = false
        store(file)
    }

    mutating func filePieceReceived(
        _ id: String, _ range: Range<Int>, _ response: AppResponse, of number: Int, after elapsed: Nanoseconds
    ) {
        guard let file = files[id] else { return }
        let arrived = arrived.removeValue(forKey: number) ?? 0
        keepBytes(of: number, file: id)
        guard Self.isPart(response, of: file, from: range.lowerBound), arrived == range.count else {
            if behavior.noticesChangedFiles { recordOutdated(file, response) }
            return fileFailed(id)
        }
        run?.lastTransfer = (range.count, elapsed)
        guard var file = files[id], file.received == file.size else { return }
        if !behavior.checksDigests || AttachmentDigest(of: file.hasher) == file.digest {
            file.isPulled = true
            run?.file = nil
            store(file)
        } else {
            discard(&file)
            store(file)
            fileFailed(id)
        }
    }

    /// The server has another file than the payload says, or none: the payload is pulled again, once.
    private mutating func recordOutdated(_ file: StoredFile, _ response: AppResponse) {
        let isOther = response.isSuccess && response["ETag"] != file.entityTag
        guard isOther || [404, 410].contains(response.status), let payload, outdatedCursor != payload.cursor else {
            return
        }
        outdatedCursor = payload.cursor
        forcesPull = true
        run?.phase = .pull
        run?.hasPulled = false
    }

    /// A transfer has failed; another file may follow.
    mutating func fileFailed(_ id: String) {
        run?.failures += 1
        run?.file = nil
        if wantedFile == id { wantedFile = nil }
        guard var file = files[id] else { return }
        file.hasFailed = true
        store(file)
    }

    mutating func discard(_ file: inout StoredFile) {
        for key in file.discard() { commits.next.set(key, nil) }
    }

    /// Deletes what has arrived of files.
    mutating func discardPartialFiles() {
        for var file in files.values.sorted(by: { $0.key < $1.key }) where !file.isPulled && file.received > 0 {
            discard(&file)
            store(file)
        }
    }

    mutating func store(_ file: StoredFile) {
        files[file.id] = file
        commits.next.set("file/\(file.id)", json: file.stored)
    }

    /// Adopts the files of a payload: one for each digest. Files that are not in it are deleted.
    mutating func adoptFiles() {
        guard let payload else { return }
        var found: Set<String> = []
        for listed in payload.files where listed.bytes > 0 && listed.bytes <= Self.fileBytesMax {
            let new = StoredFile(listed)
            guard found.insert(new.id).inserted else { continue }
            guard var file = files[new.id] else {
                store(new)
                continue
            }
            if file.key != new.key || file.title != new.title || file.url != new.url {
                file.key = new.key
                file.title = new.title
                if behavior.updatesURLs { file.url = new.url }
                store(file)
            }
        }
        for id in files.keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) where !found.contains(id) {
            guard var file = files.removeValue(forKey: id) else { continue }
            discard(&file)
            commits.next.set("file/\(id)", nil)
        }
    }

    /// Deletes files that exceed the quota.
    mutating func evictFiles() {
        let kept = Set(keptFiles)
        for var file in files.values.sorted(by: { $0.key < $1.key })
        where !kept.contains(file.id) && file.received > 0 {
            discard(&file)
            store(file)
        }
    }
}
