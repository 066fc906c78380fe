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
package enum ParentMonitor {
    /// The time between two checks.
    private static let interval = 0.1

    /// The parent process now.
    package static var parent: Int32 { getppid() }

    /// Starts the thread, which ends after it has called `onExit`, or with the process.
    ///
    /// - Parameter parent: The parent when the process began; it may have ended since.
    package static func start(_ parent: Int32, onExit: @escaping @Sendable () -> Void) {
        let thread = Thread {
            while getppid() == parent { Thread.sleep(forTimeInterval: interval) }
            onExit()
        }
        thread.name = "slowlane.parent"
        thread.start()
    }
}
