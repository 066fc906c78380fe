internal import Determinism
internal import NIOCore
internal import Wire

/// A captive portal's side of a connection of HTTP/2, after the client's preface. Each request gets the sign-in page.
struct PortalStreams {
    private var reader = HTTP2FrameReader(offset: Int64(HTTP2Frame.preface.count))
    private var decoder = HTTP2HeaderDecoder()
    private var lastStream: UInt32 = 0
    /// The client's window for the connection, and its initial window of a stream.
    private var (window, initialWindow) = (Int64(65_535), Int64(65_535))
    private var hasBegun = false
    /// Whether the client's bytes are not HTTP/2, so that the connection cannot continue.
    private(set) var hasFailed = false

    /// Returns the frames that follow the client's bytes.
    mutating func respond(to bytes: ByteBuffer) -> ByteBuffer {
        var output = ByteBuffer()
        if !hasBegun { output.writeImmutableBuffer(HTTP2Frame.settings([])) }
        hasBegun = true
        reader.received(bytes)
        do throws(HTTP2Error) {
            while let frame = try reader.takeFrame() { try process(frame, &output) }
        } catch {
            hasFailed = true
        }
        return output
    }

    private mutating func process(_ frame: HTTP2Frame, _ output: inout ByteBuffer) throws(HTTP2Error) {
        switch frame.kind {
        case .settings where !frame.isAcknowledgement:
            for (id, value) in frame.settings where id == HTTP2Frame.Setting.initialWindowSize {
                initialWindow = Int64(value)
            }
            output.writeImmutableBuffer(
                HTTP2Frame.bytes(.settings, flags: HTTP2Frame.Flag.ack, stream: 0, ByteBuffer()))
        case .ping where !frame.isAcknowledgement:
            output.writeImmutableBuffer(
                HTTP2Frame.bytes(.ping, flags: HTTP2Frame.Flag.ack, stream: 0, frame.content))
        case .windowUpdate where frame.stream == 0: window = window.addingSaturating(Int64(frame.number))
        case .headers:
            let fields = try decoder.decode(frame)
            guard frame.stream > lastStream else { return }
            lastStream = frame.stream
            respond(to: fields, frame, &output)
        case .data where frame.payloadBytes > 0:
            output.writeImmutableBuffer(HTTP2Frame.number(.windowUpdate, 0, UInt32(clamping: frame.payloadBytes)))
        default: break
        }
    }

    /// Responds on a stream. The rest of the request is not needed (RFC 9113, section 8.1).
    private mutating func respond(to fields: [HTTP2Field], _ frame: HTTP2Frame, _ output: inout ByteBuffer) {
        let (head, body) = FaultResponse.portal.http2(to: fields.value(of: ":method") ?? "")
        guard body.count <= min(window, initialWindow) else {
            let code = HTTP2ErrorCode.refusedStream.rawValue
            return _ = output.writeImmutableBuffer(HTTP2Frame.number(.resetStream, frame.stream, code))
        }
        window -= Int64(body.count)
        output.writeImmutableBuffer(HTTP2Frame.block(.headers, frame.stream, head, endsStream: body.isEmpty))
        if !body.isEmpty {
            output.writeImmutableBuffer(HTTP2Frame.data(frame.stream, ByteBuffer(bytes: body), endsStream: true))
        }
        if frame.endsStream { return }
        let code = HTTP2ErrorCode.noError.rawValue
        output.writeImmutableBuffer(HTTP2Frame.number(.resetStream, frame.stream, code))
    }
}
