/// An ability of a kind of backend beyond what every backend must do.
public struct BackendCapability: Hashable, Sendable, CustomStringConvertible {
  /// The name of the capability.
  public let description: String

  /// The ability to write a copy of the store to a new file.
  public static let backup = BackendCapability(description: "backup")
  /// The ability to serve `StoreOptions.Access.shared`; not assumed unless given.
  public static let sharing = BackendCapability(description: "sharing")
  /// The property that each backend is a handle of its own: dropping it ends its use of the place, as a crash of the process would.
  public static let handles = BackendCapability(description: "handles")
}
