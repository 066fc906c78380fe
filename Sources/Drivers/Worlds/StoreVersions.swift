public import Client
public import Scenario

/// The versions of the reference client and of their stores.
public enum StoreVersions {
    /// Returns a version of the client.
    public static func version(_ number: Int) throws(ActionError) -> ClientVersion {
        guard let version = ClientVersion(rawValue: number) else {
            throw ActionError("the reference client has no version \(number)")
        }
        return version
    }

    /// Returns why a version of the client does not start on a store; `nil` if it starts.
    public static func refusal(of version: ClientVersion, store: ClientVersion) -> History.Notice? {
        version < store ? .storeRefused(version: version.rawValue, store: store.rawValue) : nil
    }
}
