#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The mode of the terminal while a line is edited: input without buffering and echo. The former mode is restored at the
/// end, and while the process is suspended (Ctrl-Z).
struct EditingMode: Sendable {
    private let former: termios

    /// Switches the mode; `nil` if the terminal does not allow it.
    init?() {
        var former = termios()
        guard tcgetattr(STDIN_FILENO, &former) == 0 else { return nil }
        self.former = former
        guard enter() else { return nil }
    }

    /// Restores the former mode. The system would stop a process in the background that changes the mode.
    func leave() {
        guard Terminal.isInForeground else { return }
        var former = former
        tcsetattr(STDIN_FILENO, TCSADRAIN, &former)
    }

    /// Restores the mode and hides the status line whenever the process is suspended. They return when the process is in
    /// the foreground again; in the background it runs without them.
    func followJobControl(_ console: Console) {
        // The reader of the terminal would stop the process in the background.
        signal(SIGTTIN, SIG_IGN)
        Signals.on([SIGTSTP]) {
            console.suspend()
            console.flush()
            leave()
            Signals.performDefaultAction(of: SIGTSTP)
            resume(console)
        }
        Signals.on([SIGCONT]) { resume(console) }
    }

    /// Switches the mode and shows the status line again, if the process is in the foreground.
    func resume(_ console: Console) {
        if Terminal.isInForeground && enter() { console.resume() }
    }

    private func enter() -> Bool {
        var editing = former
        editing.c_lflag &= ~tcflag_t(ICANON | ECHO)
        return tcsetattr(STDIN_FILENO, TCSADRAIN, &editing) == 0
    }
}
