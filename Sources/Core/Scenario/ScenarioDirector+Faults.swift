public import Determinism
internal import Impairment

/// Faults: their application to exchanges, and their effects that are not the link's.
extension ScenarioDirector {
    /// Records that an exchange has ended before the point of its fault, so that the fault can apply to another one.
    public mutating func faultMissed(_ fault: Int) { faults.missed(fault) }

    /// Applies a fault to the exchange whose request is being recorded.
    mutating func arm(_ fault: FaultCounters.Application, exchange: Int, of device: String) {
        faultDevices[exchange] = device
        if fault.point == .stored { storedFaults.arm(fault.fault, exchange: exchange, of: device) }
        order(.armFault(fault.fault, exchange: exchange, device: device, point: fault.point))
    }

    /// Records a commit of a device's store: a fault at `stored` fires.
    mutating func committed(_ device: String) {
        guard let entry = storedFaults.committed(device) else { return }
        record(.fault(index: entry.fault, exchange: entry.exchange, point: .stored))
    }

    /// Executes the part of a fault that is not the link's.
    mutating func faultFired(_ index: Int, _ exchange: Int, _ point: Scenario.Fault.Point?) {
        guard scenario.faults.indices.contains(index) else { return }
        if let response = scenario.faults[index].action.response, Self.rejections.contains(response.status) {
            rejectedExchanges.insert(exchange)
        }
        guard let device = faultDevices.removeValue(forKey: exchange), phase == .script else { return }
        switch scenario.faults[index].action {
        // At the other points the link holds the connection until the client has been killed.
        case .kill(let named): kill(named ?? device, atOnce: point == .stored)
        case .link(.reset) where point == .stored:
            order(.closeConnection(exchange: exchange, device: device, isAbort: true))
        case .link(.close) where point == .stored:
            order(.closeConnection(exchange: exchange, device: device, isAbort: false))
        case .link: break
        }
    }

    /// The time that a user takes to sign in again.
    private static let signInDelay = Nanoseconds.seconds(1)
    /// The statuses with which a server rejects credentials (RFC 9110, 15.5.2 and 15.5.4).
    private static let rejections: Set<Int> = [401, 403]

    /// Records a response. A client whose credentials a fault has rejected may send nothing until its user acts.
    mutating func noteRejection(of exchange: Int, _ status: Int) {
        guard rejectedExchanges.remove(exchange) != nil, Self.rejections.contains(status),
            let actor = exchanges[exchange], actors.indices.contains(actor)
        else { return }
        actors[actor].signInAt = now + Self.signInDelay
    }

    /// Lets the users of clients sign in again whose credentials a fault has rejected: its response may arrive after the
    /// sync at the beginning of the phase.
    mutating func signInAgain() {
        for index in actors.indices {
            guard let time = actors[index].signInAt, time <= now else { continue }
            actors[index].signInAt = nil
            guard actors[index].mustConverge, actors[index].act == nil else { continue }
            actors[index].isSettled = false
            order(.perform(newAct(step: nil, index), actor: actors[index].name, .sync))
        }
    }

    /// Kills a device's client because of a fault, if it runs.
    private mutating func kill(_ device: String, atOnce: Bool) {
        guard let index = actorIndex[device], actors[index].isRunning else { return }
        giveUp(index)
        record(.action(actor: device, .kill))
        // An act whose request has the fault has taken effect: the world reports its end before that of the client.
        order(.killClient(newAct(step: nil, index, change: .stop), device: device, atOnce: atOnce))
    }

    /// Records that a device's client does not run: a version of it cannot open the store. Another version may.
    public mutating func clientRefused(_ device: String, at time: Instant) {
        advance(to: time)
        guard let index = actorIndex[device] else { return }
        giveUp(index)
        proceed()
    }

    /// Gives up the acts of a client that has been killed.
    mutating func giveUpActs(_ index: Int) {
        actors[index].act = nil
        for (id, act) in acts.sorted(by: { $0.key.number < $1.key.number }) where act.actor == index {
            acts[id] = nil
            if let step = act.step { miss(step, .killed(actors[index].name, .started)) }
        }
    }

    /// Gives up what else a client that is killed leaves behind.
    mutating func giveUp(_ index: Int) {
        let name = actors[index].name
        if actors[index].device?.restartsAfter == nil {
            for waiting in actors[index].queue {
                if let step = waiting.step { miss(step, .killed(name, .waiting)) }
            }
            actors[index].queue = []
        }
        actors[index].isRunning = false
        clientStopped(index)
    }

    /// Gives up the exchanges of a client that has stopped.
    mutating func clientStopped(_ index: Int) {
        let name = actors[index].name
        actors[index].isBusy = false
        actors[index].isSettled = false
        for exchange in exchanges.keys where exchanges[exchange] == index && knowledge.isPendingWrite(exchange) {
            strayWrites[exchange] = now + Self.strayWriteMax
        }
        exchanges = exchanges.filter { $0.value != index }
        dials = dials.filter { $0.value != index }
        if let missed = storedFaults.nothingLeft(name) { faults.missed(missed) }
        if actors[index].device != nil { knowledge.stopped(index) }
    }
}
