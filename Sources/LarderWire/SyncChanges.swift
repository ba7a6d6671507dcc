public import Foundation
internal import Larder

/// A request for a page of a scope's changes.
public struct SyncChangesRequest: Sendable, Hashable {
  /// Device that sends the request.
  ///
  /// The page holds the outcome of its newest push.
  public var device: String
  /// Server's history that the device knows, or `nil` before the first exchange.
  ///
  /// A server that was restored from a backup has a new history.
  public var history: String?
  /// Commit up to which the device has received everything or, in a full pass, has read.
  public var since: Int
  /// Number of records per page.
  ///
  /// A commit is never split, so that a page may hold more.
  public var limit: Int
  /// Collections to return changes of.
  ///
  /// All collections if it is empty.
  public var collections: [String]
  /// Seconds for which the server may wait for a change before it returns an empty page.
  public var wait: Int
  /// Horizon at the start of a full pass, or `nil` outside of one.
  public var from: Int?
  /// Number of records of the scope with edits that the server has not accepted, including refused ones.
  ///
  /// `nil` if unknown.
  ///
  /// A server shows it to its operator. It does not change the answer.
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

/// A page of a scope's changes: whole commits in order, with each record once, in its newest state.
public struct SyncChanges: Sendable, Hashable {
  /// History of the server.
  public var history: String
  /// Commit after which the page begins.
  public var since: Int
  /// Commit with which the page ends.
  public var until: Int
  /// Newest commit of the scope.
  public var head: Int
  /// Whether there are changes after the page.
  public var more: Bool
  /// Commit up to which tombstones may have been purged.
  public var horizon: Int
  /// Number of records after ``since``, or `nil` if the server has not counted them.
  public var total: Int?
  /// Outcome of the device's newest push, read in the same snapshot as the page.
  ///
  /// `nil` for a device that has not pushed.
  public var last: SyncReceipt?
  /// Changed records, including tombstones.
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
  /// Its records are not checked. An engine sets a record out of bounds aside and accepts the others.
  /// - Throws: `.malformed`, naming the member, also for a number or a text of the page that is out of bounds.
  public init(json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    history = try json.text("history")
    since = try json.number("since")
    until = try json.number("until")
    head = try json.number("head")
    more = try json.truth("more")
    // A server that never purges tombstones may leave it out.
    horizon = try json.number("horizon", default: 0)
    total = try json.optionalNumber("total")
    last = nil
    // Missing for a device that has not pushed, and from a server that has forgotten the device.
    if let receipt = try json.optionalObject("last") { last = try SyncReceipt(receipt) }
    changes = []
    // Without a check of each: one bad record would refuse the page, and with it every later one.
    for record in try json.objects("changes") { changes.append(try SyncRecord(record)) }
    // `until` becomes the device's position. Out of bounds, every later request would be refused.
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
