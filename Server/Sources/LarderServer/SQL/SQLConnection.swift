/// Kind of a transaction.
public enum SQLTransaction: Sendable {
  /// A transaction that reads one snapshot.
  case read
  /// A transaction that writes. On a database with one writer, it waits for the others.
  case write
}

/// Connection to a database, whose calls block.
///
/// Use it only on the thread that opened it.
public protocol SQLConnection: AnyObject {
  /// Parts of SQL statements that differ between databases.
  var dialect: SQLDialect { get }
  /// Executes a statement, and passes its rows to the closure until that returns false.
  ///
  /// - Throws: `.database`.
  func execute(_ sql: String, _ parameters: [SQLValue], row: (SQLRow) throws(StoreError) -> Bool) throws(StoreError)
  /// Begins a transaction.
  ///
  /// - Throws: `.database`.
  func begin(_ transaction: SQLTransaction) throws(StoreError)
  /// Commits the transaction durably.
  ///
  /// - Throws: `.database`. It is unknown then whether the transaction is durable.
  func commit() throws(StoreError)
  /// Rolls the transaction back. A connection that fails to do so becomes unusable.
  func rollBack()
  /// Whether the connection can still be used.
  var isUsable: Bool { get }
  /// Name of the timeline of commits that the database goes on with, or `nil` if it has none.
  ///
  /// The name changes when a copy of the database takes over, which may lack some commits.
  var timeline: String? { get }
  /// Writes a copy of the database, as it is now, to a file that does not exist yet.
  ///
  /// - Throws: `.database`, `.unusable` if the file exists, or if the database has backup tools of its own.
  func copy(to path: String) throws(StoreError)
  /// Returns the damage that the database finds in its own files. A database without such a check returns nothing.
  ///
  /// - Throws: `.database`.
  func check() throws(StoreError) -> [String]
  /// Returns the settings of the database under which a crash loses commits.
  ///
  /// - Throws: `.database`.
  func risks() throws(StoreError) -> [String]
}

/// Parts of SQL statements that differ between databases.
public struct SQLDialect: Sendable {
  /// Type of a text column that is part of a key and compared byte by byte.
  public var key: String
  /// End of a SELECT that locks its rows until the end of the transaction.
  public var forUpdate: String

  /// Creates a dialect.
  public init(key: String, forUpdate: String) { (self.key, self.forUpdate) = (key, forUpdate) }
}

extension SQLConnection {
  /// `nil`, for databases without copies that take over.
  public var timeline: String? { nil }
  /// No risks, for databases whose settings are made by the connection.
  public func risks() throws(StoreError) -> [String] { [] }

  /// Executes a statement without result rows.
  func execute(_ sql: String, _ parameters: [SQLValue] = []) throws(StoreError) {
    try execute(sql, parameters) { (_) throws(StoreError) in true }
  }

  /// Returns the first row of a statement's result, or `nil` if it has none.
  func row(_ sql: String, _ parameters: [SQLValue] = []) throws(StoreError) -> SQLRow? {
    var found: SQLRow?
    try execute(sql, parameters) { (row) throws(StoreError) in
      // The closure returns false to skip the other rows.
      found = row
      return false
    }
    return found
  }

  /// Returns all rows of a statement's result.
  func rows(_ sql: String, _ parameters: [SQLValue] = []) throws(StoreError) -> [SQLRow] {
    var found: [SQLRow] = []
    try execute(sql, parameters) { (row) throws(StoreError) in
      found.append(row)
      return true
    }
    return found
  }
}
