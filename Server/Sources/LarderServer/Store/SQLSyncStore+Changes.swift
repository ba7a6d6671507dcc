internal import Foundation
internal import LarderWire

/// Page of changes, with the newest commit of its scope.
struct ScopePage: Sendable {
  var changes: SyncChanges
  /// Newest commit of the scope.
  ///
  /// The head of the page is at least the commit after which the client asked for changes.
  var newest: Int
}

extension SQLSyncStore {
  /// Size in bytes of the values after which a page ends with the current commit.
  static let pageBytes = 8 << 20

  /// Returns only the changes of the page that `page(_:in:by:)` reads.
  func changes(_ request: SyncChangesRequest, in scope: String, by owner: String) async throws(SyncProblem) -> SyncChanges {
    try await page(request, in: scope, by: owner).changes
  }

  /// Returns a page of whole commits in their order, read in one snapshot with the newest receipt of the device.
  ///
  /// - Throws: `.history`, `.resync`, `.forbidden` for a device of another identity, `.unavailable`.
  func page(_ request: SyncChangesRequest, in scope: String, by owner: String) async throws(SyncProblem) -> ScopePage {
    try await answer(on: readers) { (connection) throws(StoreError) in
      let history = try SQLSchema.history(connection)
      if let known = request.history, known != history { throw .problem(.history(history)) }
      let row = try connection.row("SELECT head, horizon FROM larder_scopes WHERE scope = ?", [.text(scope)])
      let (newest, horizon) = (row?.integer(0) ?? 0, row?.integer(1) ?? 0)
      // A device may be ahead of a database that has lost commits, and a page must not send it back.
      let head = max(newest, request.since)
      // Tombstones up to the horizon may be purged. A device before it must read everything, unless a full pass began at this horizon.
      if request.since < horizon, request.from.map({ horizon > $0 }) ?? true { throw .problem(.resync(horizon: horizon)) }
      let device = try DeviceRow.read(connection, scope: scope, device: request.device)
      if let device, device.owner != owner { throw .problem(.forbidden) }
      var last = device?.receipt
      if let receipt = last { last = try RecordRow.filled(receipt, connection, scope: scope) }
      let (records, more) = try Self.page(request, in: scope, connection)
      // The last page has all records that are left, so only other pages need a count.
      let total = more ? try Self.count(request, in: scope, connection) : records.count
      let changes = SyncChanges(
        history: history, since: request.since, until: more ? records.last?.revision ?? head : head, head: head, more: more,
        horizon: horizon, total: total, last: last, changes: records)
      return ScopePage(changes: changes, newest: newest)
    }
  }

  /// Number of rows that one statement reads.
  ///
  /// Rows after the end of a page are read in vain.
  private static let rowsAtOnce = 256

  /// Returns the records of a page, and whether more follow.
  private static func page(
    _ request: SyncChangesRequest, in scope: String, _ connection: any SQLConnection
  ) throws(StoreError) -> (records: [SyncRecord], more: Bool) {
    let (condition, parameters) = condition(request, in: scope)
    var (records, bytes, more): ([SyncRecord], Int, Bool) = ([], 0, false)
    while true {
      var count = 0
      // In parts, since libpq receives all rows of a statement. Each part continues after the last record of the one before.
      let last = records.last.map { [SQLValue.integer($0.revision), .text($0.collection), .text($0.id)] }
      try connection.execute(
        "SELECT \(RecordRow.columns) FROM larder_records WHERE \(condition)"
          + (last == nil ? "" : " AND (revision, collection, id) > (?, ?, ?)") + " ORDER BY revision, collection, id LIMIT ?",
        parameters + (last ?? []) + [.integer(rowsAtOnce)]
      ) { (row) throws(StoreError) in
        count += 1
        let record = RecordRow.record(row)
        // A page ends only between two commits.
        if records.count >= request.limit || bytes >= pageBytes, record.revision != records.last?.revision {
          more = true
          return false
        }
        bytes += record.value?.count ?? 0
        records.append(record)
        return true
      }
      if more || count < rowsAtOnce { return (records, more) }
    }
  }

  private static func count(_ request: SyncChangesRequest, in scope: String, _ connection: any SQLConnection) throws(StoreError) -> Int {
    let (condition, parameters) = condition(request, in: scope)
    return try connection.row("SELECT COUNT(*) FROM larder_records WHERE \(condition)", parameters)?.integer(0) ?? 0
  }

  private static func condition(_ request: SyncChangesRequest, in scope: String) -> (sql: String, parameters: [SQLValue]) {
    let collections = InList(request.collections.map(SQLValue.text))
    return (
      "scope = ? AND revision > ?" + (request.collections.isEmpty ? "" : " AND collection IN (\(collections.marks))"),
      [.text(scope), .integer(request.since)] + collections.values
    )
  }

  /// Returns the newest commits of scopes, and leaves out scopes without commits.
  func heads(of scopes: [String]) async throws(SyncProblem) -> [String: Int] { try await news(of: scopes).heads }

  /// Returns the newest commits of scopes, and the history that they belong to.
  func news(of scopes: [String]) async throws(SyncProblem) -> (history: String, heads: [String: Int]) {
    let (history, heads) = try await headsByBytes(of: scopes)
    return (history, heads.reduce(into: [:]) { $0[String(decoding: $1.key, as: UTF8.self)] = $1.value })
  }

  /// Returns the newest commits of scopes by the bytes of their names, since two spellings of one Unicode text are two scopes.
  func headsByBytes(of scopes: [String]) async throws(SyncProblem) -> (history: String, heads: [[UInt8]: Int]) {
    try await answer(on: readers) { (connection) throws(StoreError) in
      var heads: [[UInt8]: Int] = [:]
      for list in InList.lists(of: scopes.map(SQLValue.text)) {
        for row in try connection.rows("SELECT scope, head FROM larder_scopes WHERE scope IN (\(list.marks))", list.values) {
          heads[Array(row.text(0).utf8)] = row.integer(1)
        }
      }
      return (try SQLSchema.history(connection), heads)
    }
  }
}
