internal import Impairment
internal import LinkModel
internal import Scenario

/// The events of the connections and exchanges of a device.
extension SimulatedDevice {
    /// Records an event of an exchange.
    func record(_ timed: SharedLink.TimedExchangeEvent) {
        switch timed.event {
        case .faultInjected: flows[timed.flow]?.stopComparing()
        case .faultMissed(_, let rule, _): world.faultMissed(rule)
        default: break
        }
        record(ledger.exchange(timed.event, on: flows[timed.flow]?.number, &world.recorder))
        if case .requested(let id, _, _, _) = timed.event { link.admitRequest(id, of: timed.flow, at: world.now) }
    }

    /// Records events of the history.
    func record(_ events: [History.Event]) { for event in events { world.record(event) } }

    /// Applies a fault to an exchange.
    func injectFault(_ index: Int, exchange number: Int, at point: Scenario.Fault.Point) {
        guard let exchange = ledger.exchange(number), let flow = flow(of: exchange.connection),
            let fault = world.scenario.faults[index].onLink(index, at: point, of: name)
        else { return }
        link.injectFault(fault, into: exchange.id, of: flow, at: world.now)
    }

    /// Aborts or closes the connection of an exchange.
    func closeConnection(of exchange: Int, isAbort: Bool) {
        guard let flow = flow(of: ledger.exchange(exchange)?.connection) else { return }
        link.closeConnection(flow, abortively: isAbort, at: world.now)
    }

    private func flow(of connection: ExchangeLedger.ConnectionID?) -> FlowID? {
        flows.first { $0.value.number == connection }?.key
    }
}
