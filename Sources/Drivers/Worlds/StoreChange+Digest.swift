public import Client
internal import Determinism

extension StoreChange {
    /// A digest of the change, the same in every process.
    public var digest: UInt64 {
        var hash = FNV1a()
        func add(_ text: String?) {
            if let text { hash.add(contentsOf: text.utf8) }
            // Not part of UTF-8; tells an absent text from an empty one.
            hash.add(text == nil ? 0xFE : 0xFF)
        }
        func add(_ number: Int) {
            withUnsafeBytes(of: Int64(number).littleEndian) { for byte in $0 { hash.add(byte) } }
        }
        func add(_ content: RecordContent?) {
            if let content { hash.add(contentsOf: content.bytes) }
            hash.add(content == nil ? 0xFE : 0xFF)
        }
        for (id, record) in records.sorted(by: { $0.key < $1.key }) {
            add(id.text)
            guard let record else { continue }
            add(record.base?.description)
            add(record.mine)
            add(record.isDeleted ? 1 : 0)
            add(record.edits)
            add(record.theirs?.revision?.description)
            add(record.theirs?.content)
        }
        for (sequence, entry) in entries.sorted(by: { $0.key < $1.key }) {
            add(sequence)
            guard let entry else { continue }
            add(entry.id.text)
            switch entry.kind {
            case .create: add("create")
            case .update: add("update")
            case .delete: add("delete")
            case .unknown(let name): add(name)
            }
            add(entry.attempts)
            add(entry.operation)
            add(entry.parked)
        }
        for (id, reason) in quarantine.sorted(by: { $0.key < $1.key }) {
            add(id.text)
            add(reason)
        }
        add((account ?? nil)?.history)
        add(index?.cursor)
        add(index?.entityTag)
        return hash.value
    }
}
