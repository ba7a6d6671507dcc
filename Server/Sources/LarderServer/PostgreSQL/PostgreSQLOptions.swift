// PostgreSQL/ is the seam over libpq, and the signs between server processes. Invariant: neither an error nor a log holds a value, a key
// or a password. Called by the store's workers.

/// The way in which a server uses PostgreSQL, or an engine that speaks its protocol.
public struct PostgreSQLOptions: Sendable, Hashable {
  /// The way in which processes tell each other about commits; looking at the database once a second goes on beside it.
  public enum Listening: Sendable, Hashable {
    /// Over connections to the store itself; with a pooler, not at all.
    case store
    /// Over direct connections, past a pooler.
    case at(String)
    /// Not at all.
    case off
  }

  /// The number of connections for pushes.
  public var writers = 8
  /// The number of connections for pages.
  public var readers = 4
  /// Whether there is a pooler in transaction mode in between, such as pgbouncer: nothing lives longer than a transaction then.
  public var usesPooler = false
  /// Whether a promoted standby has all commits, since one was synchronous: the history stays the same then.
  public var trustsFailover = false
  /// The way in which processes tell each other about commits.
  public var listening = Listening.store
  /// The time in seconds within which a connection must be there, for each host.
  public var connectSeconds = 10
  /// The time in seconds within which a statement must end.
  public var statementSeconds = 30
  /// The time in seconds that a statement waits for a lock; longer than ``idleSeconds``, after which a lost session gives its locks up.
  public var lockSeconds = 15
  /// The time in seconds after which the database ends a transaction in which nothing happens: that of a process that is gone.
  public var idleSeconds = 10
  /// The time in seconds after which a connection is given up whose bytes the other side does not confirm.
  public var networkSeconds = 15

  /// Makes the defaults.
  public init() {}
}
