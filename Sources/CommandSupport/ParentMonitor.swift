internal import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A thread that reports the end of the parent process.
///
/// The kernel gives a process whose parent has ended another parent. Linux's `PR_SET_PDEATHSIG` is not used: it reports
/// the end of the parent's thread, not of the parent.
enum ParentMonitor {
    /// The time between two checks.
    private static let interval = 0.1

    /// Starts the thread, which ends after it has called `onExit`, or with the process.
    static func start(onExit: @escaping @Sendable () -> Void) {
        let parent = getppid()
        let thread = Thread {
            while getppid() == parent { Thread.sleep(forTimeInterval: interval) }
            onExit()
        }
        thread.name = "slowlane.parent"
        thread.start()
    }
}
