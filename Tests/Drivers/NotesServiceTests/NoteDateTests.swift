import NotesContract
import Testing

/// Dates are normalised to UTC or rejected.
@Suite struct NoteDateTests {
    @Test(arguments: [
        ("2026-03-01T08:30:00Z", "2026-03-01T08:30:00.000Z"),
        ("2026-03-01T08:30:00.123456Z", "2026-03-01T08:30:00.123Z"),
        ("2026-03-01 08:30z", "2026-03-01T08:30:00.000Z"), ("2026-03-01T00:30:00+01:00", "2026-02-28T23:30:00.000Z"),
        ("2024-02-29T23:30:00-0100", "2024-03-01T00:30:00.000Z"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500Z"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.000Z"), ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
    ]) func datesAreNormalised(text: String, stored: String) { #expect(NoteDate.normalised(text) == stored) }

    @Test(arguments: [
        "", "2026-03-01", "2026-03-01T08:30:00", "2026-02-29T08:30:00Z", "2026-13-01T08:30:00Z", "2026-03-01T24:00:00Z",
        "2026-03-01T08:60:00Z", "2026-03-01T08:30:61Z", "2026-03-01T08:30:00+24:00", "2026-03-01T08:30:00Z ",
        "２０２６-03-01T08:30:00Z", "2026-03-01T08:30:00.Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:00-00:01", "99999999999999999999-01-01T00:00:00Z",
    ]) func otherTextsAreRejected(text: String) { #expect(NoteDate.normalised(text) == nil) }

    @Test func millisecondsAreFormatted() {
        #expect(NoteDate.text(millisecondsSince1970: 0) == "1970-01-01T00:00:00.000Z")
        #expect(NoteDate.text(millisecondsSince1970: -1) == "1969-12-31T23:59:59.999Z")
        #expect(NoteDate.text(millisecondsSince1970: 1_772_352_000_001) == "2026-03-01T08:00:00.001Z")
        #expect(NoteDate.text(millisecondsSince1970: .min) == "0001-01-01T00:00:00.000Z")
        #expect(NoteDate.text(millisecondsSince1970: .max) == "9999-12-31T23:59:59.999Z")
    }
}
