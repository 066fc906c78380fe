internal import Client
internal import Determinism
internal import Scenario

/// Acts of the user.
extension SimulatedDevice {
    /// Performs an action and calls `finish` when it has taken effect, with the reason if it is an error.
    func perform(_ action: Scenario.Action, finish: @escaping (String?) -> Void) {
        switch action {
        case .clock(let shift):
            wallShift = wallShift + shift
            client.wallClockChanged(on: self)
        case .disk(let disk): self.disk = disk
        case .signIn(let user): return signIn(user, finish)
        default: return client.perform(action, on: self, finish)
        }
        finishAct(finish)
    }

    /// Starts the client with the credentials and the store of a user.
    private func signIn(_ user: String, _ finish: @escaping (String?) -> Void) {
        if isRunning {
            kill()
            world.record(.stopped(device: name))
        }
        self.user = user
        if let reason = start() { return finish(reason.description) }
        world.record(.started(device: name))
        finishAct(finish)
        performWaitingActs()
    }

    /// The wall clock of the device.
    var wallClock: WallClock {
        WallClock(startMilliseconds: RunServer.startMilliseconds + Int(wallShift.count / 1_000_000))
    }

    /// Performs an act now, or after the restart of a killed client.
    func whenRunning(_ act: @escaping () -> Void) { if isRunning { act() } else { waitingActs.append(act) } }

    /// Ends an act when its change is stored: now, or after the commits on a slow disk. A kill meanwhile leaves nothing of it.
    func whenStored(_ finish: @escaping (String?) -> Void, _ body: @escaping () -> Void) {
        guard isRunning, client.isCommitting else { return body() }
        storingActs.append { [self] in if isRunning { body() } else { finish(StoreDisk.killedReason) } }
    }

    /// Performs the acts that have waited for the restart of the client.
    func performWaitingActs() {
        let acts = waitingActs
        waitingActs = []
        for act in acts { act() }
    }

    /// Drops acts that wait for a restart: the client was killed by the scenario.
    func dropWaitingActs() { waitingActs = [] }

    /// Ends an act. The director expects a report after it, even if the state is the one reported before.
    func finishAct(_ finish: (String?) -> Void) {
        wasSettled = nil
        finish(nil)
        reportSettled()
    }
}
