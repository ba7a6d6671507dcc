public import Foundation
internal import Larder

/// A request for a page of the changes in a scope, which is a set of records with its own sequence of commits at the server.
public struct SyncChangesRequest: Sendable, Hashable {
  /// Device that sends the request.
  ///
  /// The returned page holds the outcome of this device's newest push.
  public var device: String
  /// Identifier of the server's history that the device has stored, or `nil` before the first exchange.
  ///
  /// A server that was restored from a backup has a new history.
  public var history: String?
  /// Commit up to which the device has read the scope, and after which the page begins.
  public var since: Int
  /// Number of records that a page should hold at most.
  ///
  /// The server never splits a commit, so a page may hold more records than this number.
  public var limit: Int
  /// Collections whose changes the page holds.
  ///
  /// An empty array requests the changes of all collections.
  public var collections: [String]
  /// Greatest number of seconds for which the server may wait for a change before it returns an empty page.
  public var wait: Int
  /// Horizon that the server sent when it required the full pass under way, or `nil` if the server required no full pass.
  ///
  /// The horizon is the commit up to which the server may have purged tombstones. In a full pass, the device reads all records of the
  /// scope.
  public var from: Int?
  /// Number of the device's records in the scope with edits that the server has not accepted, or `nil` if the number is unknown.
  ///
  /// Records whose edits the server has refused are counted, too.
  ///
  /// A server shows this number to its operator. The number does not change the answer.
  public var pending: Int?

  /// Creates a request.
  public init(
    device: String, history: String? = nil, since: Int, limit: Int = 1_000, collections: [String] = [], wait: Int = 0, from: Int? = nil
  ) {
    self.device = device
    self.history = history
    self.since = since
    self.limit = limit
    self.collections = collections
    self.wait = wait
    self.from = from
  }
}

/// A page of a scope's changes: whole commits in order, where each record occurs once, in its newest state.
public struct SyncChanges: Sendable, Hashable {
  /// Identifier of the server's history.
  public var history: String
  /// Commit after which the page begins.
  public var since: Int
  /// Last commit of the page, after which the next page begins.
  public var until: Int
  /// Newest commit of the scope.
  public var head: Int
  /// Whether the scope has changes after the page.
  public var more: Bool
  /// Commit up to which the server may have purged the tombstones of deleted records.
  public var horizon: Int
  /// Number of records that changed after ``since``, or `nil` if the server has not counted them.
  public var total: Int?
  /// Outcome of the device's newest push, which the server reads in the same snapshot as the page.
  ///
  /// The outcome is `nil` for a device that has not pushed to the scope.
  public var last: SyncReceipt?
  /// Changed records, and tombstones in place of deleted records.
  public var changes: [SyncRecord]

  /// Creates a page.
  public init(
    history: String, since: Int, until: Int, head: Int, more: Bool = false, horizon: Int = 0, total: Int? = nil, last: SyncReceipt? = nil,
    changes: [SyncRecord] = []
  ) {
    self.history = history
    self.since = since
    self.until = until
    self.head = head
    self.more = more
    self.horizon = horizon
    self.total = total
    self.last = last
    self.changes = changes
  }

  /// Reads a page from JSON.
  ///
  /// The records of the page are not checked against the bounds of `WireField`. A sync engine checks each record, does not store a record
  /// out of bounds, and accepts all other records.
  /// - Throws: `.malformed` for a missing or wrong member, which the error names, and for a number or a text of the page that is out of
  ///   bounds.
  public init(json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    history = try json.text("history")
    since = try json.number("since")
    until = try json.number("until")
    head = try json.number("head")
    more = try json.truth("more")
    // A server that never purges tombstones may leave `horizon` out.
    horizon = try json.number("horizon", default: 0)
    total = try json.optionalNumber("total")
    last = nil
    // `last` is missing if the device has not pushed, or if the server has deleted its data about the device.
    if let receipt = try json.optionalObject("last") { last = try SyncReceipt(receipt) }
    changes = []
    // The initializer does not check the bounds of the records. If the initializer checked these bounds, one record out of bounds would
    // make every request for the page fail, and the device would never reach a later page.
    for record in try json.objects("changes") { changes.append(try SyncRecord(record)) }
    // The device stores `until` and sends it as `since`. If `until` were out of bounds, the server would refuse every later request.
    try check()
  }

  /// The page as JSON.
  public var json: Data {
    var json: JSONValue = [
      "history": .string(history), "since": JSONValue(since), "until": JSONValue(until), "head": JSONValue(head), "more": .bool(more),
      "horizon": JSONValue(horizon), "changes": .array(changes.map(\.json)),
    ]
    if let total { json["total"] = JSONValue(total) }
    if let last { json["last"] = last.value }
    return json.json
  }
}
