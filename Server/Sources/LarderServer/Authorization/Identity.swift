@_spi(Wire) public import LarderWire

// Authorization/ finds the identity of a token and its rights. Invariant: tokens are compared by their hash in constant time, and are
// neither logged nor stored. Called by HTTP.

/// Rights of an identity in a scope, which is a named set of records with commits of its own.
public struct ScopeAccess: OptionSet, Sendable, Hashable {
  /// Bits of the rights.
  public let rawValue: Int
  /// Creates rights from bits.
  public init(rawValue: Int) { self.rawValue = rawValue }
  /// Right to read changes and the number of the newest commit.
  public static let read = ScopeAccess(rawValue: 1)
  /// Right to push, and to learn which groups of the push were accepted.
  ///
  /// It reveals nothing of a stored record.
  public static let write = ScopeAccess(rawValue: 2)

  /// Parses `r`, `w` or `rw`, and returns `nil` for any other text.
  public init?(_ text: some StringProtocol) {
    switch text {
    case "r": self = .read
    case "w": self = .write
    case "rw": self = [.read, .write]
    default: return nil
    }
  }

  /// Rights as `r`, `w` or `rw`.
  public var text: String { (contains(.read) ? "r" : "") + (contains(.write) ? "w" : "") }
}

/// Rights in all scopes that match a pattern.
public struct ScopeGrant: Sendable, Hashable {
  /// Name of a scope, or a prefix of names followed by `*`.
  public var pattern: String
  /// Rights in the matching scopes.
  public var access: ScopeAccess

  /// Creates a grant.
  public init(_ pattern: String, _ access: ScopeAccess) { (self.pattern, self.access) = (pattern, access) }

  /// Prefix of the matching names, or `nil` if the pattern is the name of one scope.
  var prefix: String? { pattern.last == "*" ? String(pattern.dropLast()) : nil }

  /// Returns whether the pattern matches a scope, byte by byte.
  public func covers(_ scope: String) -> Bool {
    // Swift's own comparison takes different spellings of one Unicode text for equal, and the database does not.
    if let prefix { scope.utf8.starts(with: prefix.utf8) } else { scope.utf8.elementsEqual(pattern.utf8) }
  }
}

/// User of the server, with the rights that a token gives.
public struct Identity: Sendable, Hashable {
  /// Name of the identity, which owns devices.
  public var name: String
  /// Grants of rights in scopes.
  public var grants: [ScopeGrant]

  /// Returns whether a text is a valid name: short and without control characters, because it goes to logs and terminals.
  package static func isName(_ text: String) -> Bool { !text.isEmpty && WireField.detail.cut(text) == text }

  /// Creates an identity.
  public init(_ name: String, grants: [ScopeGrant]) { (self.name, self.grants) = (name, grants) }

  /// Returns the rights in a scope, which are those of all matching grants together.
  public func access(to scope: String) -> ScopeAccess {
    grants.reduce(into: []) { access, grant in if grant.covers(scope) { access.formUnion(grant.access) } }
  }
}

/// Lookup of the identity that a bearer token belongs to.
///
/// Use ``TokenFileAuthorizer`` for tokens in a file and ``JWTAuthorizer`` for JSON Web Tokens. Implement this protocol for others.
public protocol Authorizer: Sendable {
  /// Returns the identity that a token belongs to.
  ///
  /// - Throws: `.unauthorized` for a token that is not or no longer valid, `.unavailable` if that cannot be checked now.
  func identity(of token: String) async throws(SyncProblem) -> Identity
}

/// Authorizer that accepts every request without a token and gives it all rights.
///
/// Use it for experiments on one machine only.
public struct NoAuthorizer: Authorizer {
  /// Creates the authorizer.
  public init() {}
  /// Returns the one identity that all requests share, with all rights.
  public func identity(of token: String) async throws(SyncProblem) -> Identity {
    Identity("anyone", grants: [ScopeGrant("*", [.read, .write])])
  }
}
