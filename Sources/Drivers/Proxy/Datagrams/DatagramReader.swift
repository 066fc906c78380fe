#if os(Linux)
internal import DequeModule
internal import NIOCore

/// Reads sockets of datagrams when they are readable: in turn, within a budget for each turn of the event loop, and not while the
/// link has a backlog; datagrams then wait in the sockets' buffers. Owns the sockets. Used on its event loop only.
final class DatagramReader {
    private unowned let driver: LinkDriver
    private let readiness: DatagramReadiness
    private let registration: DatagramReadiness.Port
    /// The sockets by number; -1 for none.
    private var descriptors: [CInt] = []
    /// The numbers of sockets that are readable and not watched.
    private var readable = Deque<Int>()
    private var readIsScheduled = false
    private var isReading = false
    private var isStopped = false

    /// Reads a socket. Returns the number of datagrams.
    var read: (Int) -> Int = { _ in 0 }

    /// The maximum number of datagrams that are read in one turn of the event loop.
    private static let datagramsPerTurn = 512
    /// The cost of a read, in datagrams.
    private static let readCost = 4

    /// - Parameter driver: The link whose backlog stops reads.
    init(_ driver: LinkDriver) throws {
        self.driver = driver
        readiness = try DatagramReadiness.shared.get()
        let box = Box()
        let (eventLoop, bound) = (driver.eventLoop, NIOLoopBound(box, eventLoop: driver.eventLoop))
        registration = readiness.register { indices in eventLoop.execute { bound.value.reader?.ready(indices) } }
        box.reader = self
    }

    deinit { closeAll() }

    /// A weak reference for the thread's call.
    private final class Box { weak var reader: DatagramReader? }

    /// Reads a socket from now on, and closes it at the end.
    func watch(_ descriptor: CInt, index: Int) {
        while descriptors.count <= index { descriptors.append(-1) }
        descriptors[index] = descriptor
        _ = readiness.watch(descriptor, of: registration, index: index, isNew: true)
    }

    /// Closes a socket.
    func close(_ index: Int) {
        guard descriptors.indices.contains(index), descriptors[index] >= 0 else { return }
        SystemSocket.close(descriptors[index])
        descriptors[index] = -1
    }

    /// Ends all reads.
    func stop() {
        if isStopped { return }
        isStopped = true
        readiness.unregister(registration)
    }

    /// Ends all reads and closes all sockets.
    func closeAll() {
        stop()
        for index in descriptors.indices { close(index) }
    }

    private func ready(_ indices: [Int]) {
        readable.append(contentsOf: indices)
        if !readIsScheduled && !isReading { readAll() }
    }

    private func scheduleRead() {
        if readIsScheduled || isStopped { return }
        readIsScheduled = true
        driver.runLater { [weak self] _ in
            self?.readIsScheduled = false
            self?.readAll()
        }
    }

    private func readAll() {
        isReading = true
        var left = Self.datagramsPerTurn
        while left > 0, !isStopped, !driver.hasBacklog, let index = readable.popFirst() {
            let count = read(index)
            left -= Self.readCost + count
            if isStopped { break }
            if count == DatagramBuffer.count {
                readable.append(index)
            } else if descriptors.indices.contains(index), descriptors[index] >= 0 {
                _ = readiness.watch(descriptors[index], of: registration, index: index, isNew: false)
            }
        }
        isReading = false
        if !readable.isEmpty { scheduleRead() }
    }
}
#endif
