import Client
import Expense
import Testing

@Suite struct RecordLookTests {
    /// Offline, pending action, errors: grey, struck, hidden, error.
    @Test(arguments: [
        "online  none   no   ----", "online  none   yes  ---E", "offline none   no   ----", "offline none   yes  ---E",
        "online  add    no   ----", "online  add    yes  G--E", "offline add    no   G---", "offline add    yes  G--E",
        "online  update no   ----", "online  update yes  ---E", "offline update no   G---", "offline update yes  ---E",
        "online  delete no   --H-", "online  delete yes  ---E", "offline delete no   GS--", "offline delete yes  ---E",
    ]) func aRecordHasTheLookOfTheTable(_ line: String) {
        let words = line.split(separator: " ").map(String.init)
        let look = RecordLook(
            isOffline: words[0] == "offline", pending: PendingAction(rawValue: words[1]), hasErrors: words[2] == "yes")
        let found =
            (look.isGrey ? "G" : "-") + (look.isStruck ? "S" : "-") + (look.isHidden ? "H" : "-")
            + (look.showsErrors ? "E" : "-")
        #expect(found == words[3])
    }
}
