/// Results that arrive in any order and leave in the order of their indices.
public struct OrderedResults<Value: Sendable>: Sendable {
    private var pending: [Int: Value] = [:]
    /// The index of the next value to leave.
    public private(set) var next = 0
    /// The number of values that have arrived.
    public private(set) var count = 0

    /// Creates an empty sequence.
    public init() {}

    /// Adds a value and returns the values that can leave, in order.
    public mutating func add(_ value: Value, at index: Int) -> [Value] {
        pending[index] = value
        count += 1
        var ready: [Value] = []
        while let value = pending.removeValue(forKey: next) {
            ready.append(value)
            next += 1
        }
        return ready
    }
}
