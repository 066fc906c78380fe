internal import Impairment

/// The actions of datagrams.
extension LinkDriver {
    /// Executes the actions of datagrams within the turn's budget.
    func executeDatagramActions(_ budget: inout TurnBudget) {
        while !budget.isSpent, let action = takeDatagramAction() {
            budget.spend(action.action)
            if let datagramPort { datagramPort.execute(action) } else { forwardDatagrams?.execute(action, on: self) }
        }
    }

    /// The end of the access to the link, as of ``takeExchangeEvent()``.
    @inline(never)
    private func takeDatagramAction() -> SharedLink.TimedDatagramAction? { link.takeDatagramAction() }
}
