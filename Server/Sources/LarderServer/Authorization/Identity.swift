@_spi(Wire) public import LarderSync

// Authorization/ says who a token stands for, and what they may do. Invariant: tokens are compared by their hash in constant time, and are
// neither logged nor stored. Called by HTTP.

/// The rights in a scope.
public struct ScopeAccess: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: Int
  /// Makes rights of bits.
  public init(rawValue: Int) { self.rawValue = rawValue }
  /// To ask for changes and heads.
  public static let read = ScopeAccess(rawValue: 1)
  /// To push, and to learn which groups were accepted: nothing of a record that is there already.
  public static let write = ScopeAccess(rawValue: 2)

  /// Reads `r`, `w` or `rw`.
  public init?(_ text: some StringProtocol) {
    switch text {
    case "r": self = .read
    case "w": self = .write
    case "rw": self = [.read, .write]
    default: return nil
    }
  }

  /// The rights as `r`, `w` or `rw`.
  public var text: String { (contains(.read) ? "r" : "") + (contains(.write) ? "w" : "") }
}

/// The rights in all scopes that a pattern covers.
public struct ScopeGrant: Sendable, Hashable {
  /// The name of a scope, or the beginning of names with `*` behind it.
  public var pattern: String
  /// The rights.
  public var access: ScopeAccess

  /// Makes a grant.
  public init(_ pattern: String, _ access: ScopeAccess) { (self.pattern, self.access) = (pattern, access) }

  /// The beginning of the names that it covers; `nil` where it covers one scope only.
  var prefix: String? { pattern.last == "*" ? String(pattern.dropLast()) : nil }

  /// Returns whether a scope is covered, compared byte by byte.
  public func covers(_ scope: String) -> Bool {
    if let prefix { scope.utf8.starts(with: prefix.utf8) } else { scope.utf8.elementsEqual(pattern.utf8) }
  }
}

/// Somebody who uses the server.
public struct Identity: Sendable, Hashable {
  /// The name, to which devices belong.
  public var name: String
  /// The rights.
  public var grants: [ScopeGrant]

  /// Returns whether a text may name an identity: the name goes to logs and terminals.
  package static func isName(_ text: String) -> Bool { !text.isEmpty && WireField.detail.cut(text) == text }

  /// Makes an identity.
  public init(_ name: String, grants: [ScopeGrant]) { (self.name, self.grants) = (name, grants) }

  /// Returns the rights in a scope.
  public func access(to scope: String) -> ScopeAccess {
    grants.reduce(into: []) { access, grant in if grant.covers(scope) { access.formUnion(grant.access) } }
  }
}

/// The way from a bearer token to an identity.
public protocol Authorizer: Sendable {
  /// Returns who a token stands for.
  ///
  /// - Throws: `.unauthorized` for a token that is not valid (any more), `.unavailable`.
  func identity(of token: String) async throws(SyncProblem) -> Identity
}

/// A server without tokens, for tries on one machine: everybody may do everything.
public struct NoAuthorizer: Authorizer {
  /// Makes it.
  public init() {}
  /// Returns the one identity, with all rights.
  public func identity(of token: String) async throws(SyncProblem) -> Identity {
    Identity("anyone", grants: [ScopeGrant("*", [.read, .write])])
  }
}
