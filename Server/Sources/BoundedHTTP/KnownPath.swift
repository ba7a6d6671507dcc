public import HTTPTypes

/// Path of a server as a template, for answers and logs that must not repeat a client's text.
public struct KnownPath: Sendable, Hashable {
  /// Path with its parameters in braces, such as `/v1/scopes/{scope}/push`.
  public let template: String
  /// Methods that the path accepts.
  public let methods: [HTTPRequest.Method]

  /// Creates a path.
  public init(_ template: String, _ methods: [HTTPRequest.Method]) { (self.template, self.methods) = (template, methods) }

  /// Problem for a path that does not exist (404).
  public static let nothing = HTTPProblem.refused(.notFound, "There is nothing at this path.")

  /// Problem for a method that the path does not accept (405).
  public var wrongMethod: HTTPProblem {
    .refused(.methodNotAllowed, "Expected the method \(methods.map(\.rawValue).joined(separator: " or ")).")
  }

  /// Value of the field `Allow`.
  var allow: String { methods.map(\.rawValue).joined(separator: ", ") }
}

/// Lookup of a server's paths, for a path as it was sent and without its query.
public protocol KnownPaths: Sendable {
  /// Returns the known path that a text matches, or `nil`.
  func find(_ path: String) -> KnownPath?
}
