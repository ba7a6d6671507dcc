public import HTTPTypes
public import LarderSync

/// A path that a server knows, for answers and logs that must not repeat what a client has written.
public struct KnownPath: Sendable, Hashable {
  /// The path with its parameters in braces, such as `/v1/scopes/{scope}/push`.
  public let template: String
  /// The methods that it is asked for with.
  public let methods: [HTTPRequest.Method]

  /// Makes a path.
  public init(_ template: String, _ methods: [HTTPRequest.Method]) { (self.template, self.methods) = (template, methods) }

  /// The problem of a path that is not known.
  public static let nothing = SyncProblem.refused(status: 404, detail: "There is nothing at this path.")

  /// The problem of a request with another method.
  public var wrongMethod: SyncProblem {
    .refused(status: 405, detail: "Expected the method \(methods.map(\.rawValue).joined(separator: " or ")).")
  }

  /// The value of the field `Allow`.
  var allow: String { methods.map(\.rawValue).joined(separator: ", ") }
}

/// The paths of a server, looked up as they were sent, without what stands behind `?`.
public protocol KnownPaths: Sendable {
  /// Returns the path that a text is; `nil` where there is nothing.
  func find(_ path: String) -> KnownPath?
}
