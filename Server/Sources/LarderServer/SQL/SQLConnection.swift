/// A transaction's purpose.
public enum SQLTransaction: Sendable {
  /// To read one snapshot.
  case read
  /// To write; on databases with one writer it waits for the others.
  case write
}

/// A connection to a database, whose calls block; it stays on the thread that made it.
public protocol SQLConnection: AnyObject {
  /// The words in which databases differ.
  var dialect: SQLDialect { get }
  /// Executes a statement, and hands out its rows until the closure returns false.
  ///
  /// - Throws: `.database`.
  func execute(_ sql: String, _ parameters: [SQLValue], row: (SQLRow) throws(StoreError) -> Bool) throws(StoreError)
  /// Begins a transaction.
  ///
  /// - Throws: `.database`.
  func begin(_ transaction: SQLTransaction) throws(StoreError)
  /// Makes the transaction durable.
  ///
  /// - Throws: `.database`; whether it is durable is unknown then.
  func commit() throws(StoreError)
  /// Ends the transaction without its writes; a connection that cannot is not used any more.
  func rollBack()
  /// Whether the connection can still be used.
  var isUsable: Bool { get }
  /// The name of the line of commits that the database goes on with; another one after a copy of it has taken over, which may lack some.
  var timeline: String? { get }
  /// Writes a copy of the database, as it is now, to a file that does not exist.
  ///
  /// - Throws: `.database`, `.unusable` where the database has tools of its own for that.
  func copy(to path: String) throws(StoreError)
  /// Returns what the database finds wrong with its own files; nothing for most.
  ///
  /// - Throws: `.database`.
  func check() throws(StoreError) -> [String]
  /// Returns the settings of the database under which a crash loses commits.
  ///
  /// - Throws: `.database`.
  func risks() throws(StoreError) -> [String]
}

/// The words in which databases differ.
public struct SQLDialect: Sendable {
  /// The type of a text that is a key, which is compared byte by byte.
  public var key: String
  /// The end of a SELECT that locks its rows until the end of the transaction.
  public var forUpdate: String

  /// Makes a dialect.
  public init(key: String, forUpdate: String) { (self.key, self.forUpdate) = (key, forUpdate) }
}

extension SQLConnection {
  /// No timeline: for databases that no copy takes over from.
  public var timeline: String? { nil }
  /// No risks: for databases whose settings are made by the connection.
  public func risks() throws(StoreError) -> [String] { [] }

  /// Executes a statement that has no rows.
  func execute(_ sql: String, _ parameters: [SQLValue] = []) throws(StoreError) {
    try execute(sql, parameters) { (_) throws(StoreError) in true }
  }

  /// Returns the first row of an answer.
  func row(_ sql: String, _ parameters: [SQLValue] = []) throws(StoreError) -> SQLRow? {
    var found: SQLRow?
    try execute(sql, parameters) { (row) throws(StoreError) in
      found = row
      return false
    }
    return found
  }

  /// Returns all rows of an answer.
  func rows(_ sql: String, _ parameters: [SQLValue] = []) throws(StoreError) -> [SQLRow] {
    var found: [SQLRow] = []
    try execute(sql, parameters) { (row) throws(StoreError) in
      found.append(row)
      return true
    }
    return found
  }
}
