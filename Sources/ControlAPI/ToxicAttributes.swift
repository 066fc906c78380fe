/// The toxic types with the names of their attributes, for clients of the API.
public enum ToxicAttributes {
    /// Returns the attributes of a toxic type; `nil` for an unknown type, which a Toxiproxy server with custom toxics may have.
    public static func names(ofType type: String) -> [String]? { ToxicType(rawValue: type)?.attributes }
}
