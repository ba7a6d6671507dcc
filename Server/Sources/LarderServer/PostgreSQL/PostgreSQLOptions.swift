// PostgreSQL/ implements SQLConnection over libpq, and the announcements between server processes. Invariant: neither an error nor a log
// holds a value, a key or a password. Called by the store's workers.

/// Options for a server on PostgreSQL, or on an engine that speaks its protocol.
///
/// Create the defaults, change them if you have a pooler or standbys, and pass them to `SQLSyncStore.open`.
public struct PostgreSQLOptions: Sendable, Hashable {
  /// Way in which server processes announce commits to each other.
  ///
  /// Each process also queries the newest commits once a second, with every choice.
  public enum Listening: Sendable, Hashable {
    /// Announces over connections to the address of the store, and with a pooler not at all.
    case store
    /// Announces over direct connections to this address, past a pooler.
    case at(String)
    /// Announces nothing.
    case off
  }

  /// Number of connections for pushes.
  public var writers = 8
  /// Number of connections for pages of changes.
  public var readers = 4
  /// Whether a pooler in transaction mode, such as pgbouncer, is in between.
  ///
  /// No setting or statement outlives a transaction then.
  public var usesPooler = false
  /// Whether a promoted standby has all commits, because replication was synchronous.
  ///
  /// The history stays the same then.
  public var trustsFailover = false
  /// Way in which server processes announce commits to each other.
  public var listening = Listening.store
  /// Time in seconds within which a connection must be made, for each host.
  public var connectSeconds = 10
  /// Time in seconds within which a statement must end.
  public var statementSeconds = 30
  /// Time in seconds that a statement waits for a lock.
  ///
  /// Keep it longer than ``idleSeconds``, after which a lost session gives up its locks.
  public var lockSeconds = 15
  /// Time in seconds after which the database ends a transaction without statements, such as that of a process that is gone.
  public var idleSeconds = 10
  /// Time in seconds after which a connection is given up if the other side confirms no bytes.
  public var networkSeconds = 15
  /// Seconds for which a transaction is run again after transient failures: serialization failures, deadlocks, lost connections.
  package var retrySeconds = 10

  /// Creates the default options.
  public init() {}
}
