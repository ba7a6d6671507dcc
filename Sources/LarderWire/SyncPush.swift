public import Foundation
package import Larder

/// A batch of edits that a device sends to a scope of the server in one request.
///
/// Until the device receives the outcome, it sends the same push again, changed only in ``clock``.
public struct SyncPush: Sendable, Hashable {
  /// Identifier of the server's history that the device has stored, or `nil` before the first exchange.
  public var history: String?
  /// Identifier of the device, a UUID.
  public var device: String
  /// Number of the push: 1 for the device's first push to the scope, and one more after each received outcome.
  public var seq: Int
  /// Random name of the push.
  ///
  /// If a store is copied, both copies send pushes with the same numbers. The server distinguishes the pushes of the two copies by the
  /// random names.
  public var token: String
  /// Device's clock at the time of sending, in milliseconds since 1970.
  public var clock: SyncMilliseconds
  /// Edited records, in transaction groups.
  ///
  /// The server writes all records of a transaction group or none.
  public var groups: [[PushedRecord]]

  /// Creates a push.
  public init(history: String?, device: String, seq: Int, token: String, clock: SyncMilliseconds, groups: [[PushedRecord]]) {
    self.history = history
    self.device = device
    self.seq = seq
    self.token = token
    self.clock = clock
    self.groups = groups
  }

  /// Reads a push from JSON.
  ///
  /// - Throws: `.malformed` for a missing or wrong member, which the error names, and for a value of the push or of a record that is out of
  ///   bounds.
  public init(json: Data) throws(SyncProblem) {
    try self.init(unchecked: json)
    // Servers read pushes with this initializer. Without the check of bounds, a value out of bounds would reach the database of the server.
    try check()
  }

  /// Reads a push that this device has stored, without a check of bounds.
  ///
  /// An earlier version of the app may have stored a push with a record out of bounds, and this push must still be readable.
  package init(unchecked json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    history = try json.optionalText("history")
    device = try json.text("device")
    seq = try json.number("seq")
    token = try json.text("token")
    clock = try json.number("clock")
    groups = []
    for group in try json.objects("groups") {
      var records: [PushedRecord] = []
      for record in try group.objects("records") { records.append(try PushedRecord(record)) }
      groups.append(records)
    }
  }

  /// The push as JSON.
  public var json: Data { value.json }

  package var value: JSONValue {
    var json: JSONValue = [
      "device": .string(device), "seq": JSONValue(seq), "token": .string(token), "clock": JSONValue(clock),
      "groups": .array(groups.map { ["records": .array($0.map(\.json))] }),
    ]
    // A device receives the identifier of the server's history with the changes that it reads before its first push. A push has no such
    // identifier only if it is the device's first push to a scope that the device may not read.
    if let history { json["history"] = JSONValue(history) }
    return json
  }
}

/// Outcome of one transaction group of a push.
public enum SyncOutcome: Sendable, Hashable {
  /// The server wrote the records of the transaction group, in the commit of the scope whose number is the associated value.
  case accepted(Int)
  /// A record of the transaction group was not at its base revision, and the server wrote no record of the group.
  ///
  /// The associated value holds the server's current records of the group.
  ///
  /// The answer to a push holds at most 1 MiB of values. A record that does not fit into the answer is left out, and the device receives it
  /// with a page of changes.
  case conflict([SyncRecord])
  /// The server refuses the records of the transaction group permanently, for example by a rule of the app.
  case rejected(code: String, detail: String)
}

extension SyncOutcome {
  init(_ json: WireObject) throws(SyncProblem) {
    if let revision: Int = try json.optionalNumber("ok") {
      self = .accepted(revision)
    } else if let rejection = try json.optionalObject("rejected") {
      // A rule of a server may refuse a record with a code and without a detail.
      self = .rejected(code: try rejection.text("code"), detail: try rejection.text("detail", default: ""))
    } else {
      // If the token may write the scope and not read it, a conflict holds an empty list of records.
      var records: [SyncRecord] = []
      for record in try json.objects("conflict") { records.append(try SyncRecord(record)) }
      self = .conflict(records)
    }
  }

  var json: JSONValue {
    switch self {
    case .accepted(let revision): ["ok": JSONValue(revision)]
    case .conflict(let records): ["conflict": .array(records.map(\.json))]
    case .rejected(let code, let detail): ["rejected": ["code": .string(code), "detail": .string(detail)]]
    }
  }
}

/// The outcomes of a device's newest push, which the server stores and returns again if the device repeats the push.
public struct SyncReceipt: Sendable, Hashable {
  /// Number of the push whose outcomes the receipt holds.
  public var seq: Int
  /// Random name of the push whose outcomes the receipt holds.
  public var token: String
  /// Outcomes of the push, one for each transaction group, in the order of the groups.
  public var outcomes: [SyncOutcome]

  /// Creates a receipt.
  public init(seq: Int, token: String, outcomes: [SyncOutcome]) {
    self.seq = seq
    self.token = token
    self.outcomes = outcomes
  }

  /// Reads a receipt of a push from JSON.
  ///
  /// - Throws: `.malformed` for a missing or wrong member, which the error names, and for a value out of bounds.
  public init(json: Data) throws(SyncProblem) {
    try self.init(WireObject(json))
    try check()
  }

  /// The receipt as JSON.
  public var json: Data { value.json }

  init(_ json: WireObject) throws(SyncProblem) {
    seq = try json.number("seq")
    token = try json.text("token")
    outcomes = []
    for outcome in try json.objects("outcomes") { outcomes.append(try SyncOutcome(outcome)) }
  }

  var value: JSONValue { ["seq": JSONValue(seq), "token": .string(token), "outcomes": .array(outcomes.map(\.json))] }
}

extension SyncReceipt {
  /// Largest number of bytes of values in all conflicts of one receipt.
  ///
  /// The receipt of the newest push is part of each page of changes, so its size adds to every page.
  @_spi(Wire) public static let conflictBytes = 1 << 20

  /// Reads a receipt from the JSON of ``remembered``, or from the JSON of a receipt with the values of its conflicts.
  ///
  /// The records of the conflicts have revision 0 and no value. ``filled(bytes:from:)`` returns a receipt with the current values of these
  /// records.
  @_spi(Wire) public init(remembered json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    try self.init(json)
    for (index, outcome) in try json.objects("outcomes").enumerated() {
      guard case .conflict(let records) = outcomes[index] else { continue }
      // The member `at` names the records of a conflict without their values. A receipt that an earlier version of the server stored has no
      // `at`, and holds the records with their values in `conflict`.
      let references = try outcome.optionalObjects("at")?.map { (place) throws(SyncProblem) in
        SyncRecord(collection: try place.text("in"), id: try place.text("id"), revision: 0)
      }
      outcomes[index] = .conflict(references ?? records.map { SyncRecord(collection: $0.collection, id: $0.id, revision: 0) })
    }
    try check()
  }

  /// The receipt as JSON in the form that a server stores, in which conflicts name their records and hold no values.
  ///
  /// A server stores one receipt for each device. If receipts held values, a record of 1 MiB in conflict with the pushes of 75 devices
  /// would be stored 75 times.
  @_spi(Wire) public var remembered: Data {
    var json = value
    json["outcomes"] = .array(
      outcomes.map { outcome in
        guard case .conflict(let records) = outcome else { return outcome.json }
        // The empty member `conflict` is needed, because reading an outcome requires one of the members `ok`, `rejected` and `conflict`.
        return ["conflict": [], "at": .array(records.map { ["in": .string($0.collection), "id": .string($0.id)] })]
      })
    return json.json
  }

  /// Returns the receipt with the current records of its conflicts.
  ///
  /// - Parameters:
  ///   - bytes: Largest number of bytes of all values. A record that does not fit is left out, and the device receives it with a page of
  ///     changes.
  ///   - current: Returns the current record of a reference, or `nil` if its value does not fit.
  @_spi(Wire) public func filled(bytes: Int = conflictBytes, from current: (SyncRecord) -> SyncRecord?) -> SyncReceipt {
    // The limit of bytes applies to all outcomes of a receipt together. With a limit for each outcome, a push with many groups could fill
    // every later page of changes.
    var (receipt, room) = (self, bytes)
    for (index, outcome) in outcomes.enumerated() {
      guard case .conflict(let references) = outcome else { continue }
      receipt.outcomes[index] = .conflict(
        references.compactMap { reference in
          guard let record = current(reference) else { return nil }
          let size = record.value?.count ?? 0
          // Only the record that does not fit is left out, because a smaller record after it may still fit.
          guard size <= room else { return nil }
          room -= size
          return record
        })
    }
    return receipt
  }
}

/// The server's answer to a push.
public struct SyncPushReply: Sendable, Hashable {
  /// Identifier of the server's history.
  public var history: String
  /// Server's clock, in milliseconds since 1970.
  public var now: SyncMilliseconds
  /// Number, random name and outcomes of the push.
  public var receipt: SyncReceipt

  /// Creates an answer.
  public init(history: String, now: SyncMilliseconds, receipt: SyncReceipt) {
    self.history = history
    self.now = now
    self.receipt = receipt
  }

  /// Reads an answer from JSON.
  ///
  /// - Throws: `.malformed` for a missing or wrong member, which the error names, and for a value out of bounds.
  public init(json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    history = try json.text("history")
    now = try json.number("now")
    // The receipt is read from the same JSON object, because on the wire its members lie beside `history` and `now`.
    receipt = try SyncReceipt(json)
    try check()
  }

  /// The answer as JSON.
  public var json: Data {
    var json = receipt.value
    json["history"] = JSONValue(history)
    json["now"] = JSONValue(now)
    return json.json
  }
}
