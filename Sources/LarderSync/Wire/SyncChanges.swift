public import Foundation
@_spi(Inspection) internal import Larder

/// A question for the changes of a scope.
public struct SyncChangesRequest: Sendable, Hashable {
  /// The device that asks, for the outcome of its newest push.
  public var device: String
  /// The history that the device knows; `nil` before the first exchange.
  public var history: String?
  /// The commit up to which the device has everything, or, in a full pass, has read.
  public var since: Int
  /// The number of records to answer with; a commit is never cut, so that there may be some more.
  public var limit: Int
  /// The collections to answer for; all without any.
  public var collections: [String]
  /// The time in seconds that the server may wait for a change before it answers that there is none.
  public var wait: Int
  /// The horizon with which a full pass began; `nil` outside of one.
  public var from: Int?
  /// The number of records of the scope with edits that the server has not taken, those that it has refused included; `nil` for unknown.
  ///
  /// A server shows it to its operator, and answers as it would without it.
  public var pending: Int?

  /// Makes a question.
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

/// A page of the changes of a scope: whole commits, in their order, each record once at its newest.
public struct SyncChanges: Sendable, Hashable {
  /// The history of the server.
  public var history: String
  /// The commit behind which the page begins.
  public var since: Int
  /// The commit with which it ends.
  public var until: Int
  /// The newest commit of the scope.
  public var head: Int
  /// Whether there are changes behind the page.
  public var more: Bool
  /// The commit up to which tombstones may have been forgotten.
  public var horizon: Int
  /// The number of records behind ``since``, where the server has counted them.
  public var total: Int?
  /// The outcome of the device's newest push, read in one snapshot with the page; `nil` for a device that has not pushed.
  public var last: SyncReceipt?
  /// The records.
  public var changes: [SyncRecord]

  /// Makes a page.
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

  /// Reads a page.
  ///
  /// Records may be out of bounds: an engine sets such a record aside and takes the others.
  /// - Throws: `.malformed`, naming the member, also for a number or a text out of bounds.
  public init(json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    history = try json.text("history")
    since = try json.number("since")
    until = try json.number("until")
    head = try json.number("head")
    more = try json.truth("more")
    horizon = try json.number("horizon", default: 0)
    total = try json.optionalNumber("total")
    last = nil
    if let receipt = try json.optionalObject("last") { last = try SyncReceipt(receipt) }
    changes = []
    for record in try json.objects("changes") { changes.append(try SyncRecord(record)) }
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
