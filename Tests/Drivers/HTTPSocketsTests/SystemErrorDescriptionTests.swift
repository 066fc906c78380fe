import HTTPSockets
import NIOCore
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite struct SystemErrorDescriptionTests {
    @Test func anErrnoIsNamed() {
        let description = SystemErrorDescription(IOError(errnoCode: EADDRINUSE, reason: "bind"))
        #expect(description.text == "address already in use")
        #expect(description.errnoName == "EADDRINUSE")
        #expect("\(description)" == "address already in use (EADDRINUSE)")
    }

    @Test func aTimeoutStatesItsLimit() {
        let description = SystemErrorDescription(ChannelError.connectTimeout(.milliseconds(1500)))
        #expect("\(description)" == "no response within 1500 ms (ETIMEDOUT)")
    }

    @Test func anErrnoWithoutANameIsDescribedInWords() {
        let description = SystemErrorDescription(IOError(errnoCode: ENOEXEC, reason: "test"))
        #expect(description.errnoName == nil)
        #expect("\(description)" == description.text)
    }

    @Test(arguments: [(EMFILE, true), (ENFILE, true), (ECONNREFUSED, false)])
    func aLackOfFileDescriptorsIsRecognised(_ code: CInt, _ isFileLimit: Bool) {
        #expect(SystemErrorDescription.isFileLimit(IOError(errnoCode: code, reason: "accept")) == isFileLimit)
    }
}
