public import Foundation
package import Larder

/// A batch of edits that a device sends in one request.
///
/// Until its outcome is known, the device sends it again unchanged, except for ``clock``.
public struct SyncPush: Sendable, Hashable {
  /// Server's history that the device knows, or `nil` before the first exchange.
  public var history: String?
  /// Identifier of the device, a UUID.
  public var device: String
  /// Number of the push: 1 for the device's first in the scope, and one more after each known outcome.
  public var seq: Int
  /// Random name of the push.
  ///
  /// Two copies of a store send the same numbers, and never the same name.
  public var token: String
  /// Device's clock at the time of sending, in milliseconds since 1970.
  public var clock: SyncMilliseconds
  /// Records, in groups that are accepted whole or not at all.
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
  /// - Throws: `.malformed`, naming the member, also for a value of the push or of a record that is out of bounds.
  public init(json: Data) throws(SyncProblem) {
    try self.init(unchecked: json)
    // Servers read pushes with this initializer, so that no value out of bounds reaches their database.
    try check()
  }

  /// Reads a stored push of this device, without a check of bounds.
  ///
  /// An earlier version of the app may have stored a record out of bounds.
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
    // Missing only in the first push to a scope that may not be read. Elsewhere, the device receives the history before its first push.
    if let history { json["history"] = JSONValue(history) }
    return json
  }
}

/// Outcome of one group of a push.
public enum SyncOutcome: Sendable, Hashable {
  /// The records were written in this commit of the scope.
  case accepted(Int)
  /// A record was not at its base, and nothing of the group was written.
  ///
  /// The server's current records of the group are attached.
  ///
  /// A push returns at most 1 MiB of values. A record that does not fit is left out and comes with the changes.
  case conflict([SyncRecord])
  /// The server refuses the records permanently, such as by a rule of the app.
  case rejected(code: String, detail: String)
}

extension SyncOutcome {
  init(_ json: WireObject) throws(SyncProblem) {
    if let revision: Int = try json.optionalNumber("ok") {
      self = .accepted(revision)
    } else if let rejection = try json.optionalObject("rejected") {
      // A server's rule may have a code alone.
      self = .rejected(code: try rejection.text("code"), detail: try rejection.text("detail", default: ""))
    } else {
      // To a token that may not read the scope, a conflict lists no records.
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

/// The outcomes of a device's newest push, which the server stores for repeated pushes.
public struct SyncReceipt: Sendable, Hashable {
  /// Number of the push.
  public var seq: Int
  /// Random name of the push.
  public var token: String
  /// Outcomes, one for each group.
  public var outcomes: [SyncOutcome]

  /// Creates a receipt.
  public init(seq: Int, token: String, outcomes: [SyncOutcome]) {
    self.seq = seq
    self.token = token
    self.outcomes = outcomes
  }

  /// Reads a receipt from JSON.
  ///
  /// - Throws: `.malformed`, naming the member.
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
  /// Largest number of value bytes in all conflicts of one receipt.
  ///
  /// A receipt is part of each page.
  @_spi(Wire) public static let conflictBytes = 1 << 20

  /// Reads a receipt from ``remembered``, or from the JSON of a receipt with values.
  ///
  /// The records of its conflicts have revision 0 and no value until ``filled(bytes:from:)``.
  @_spi(Wire) public init(remembered json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    try self.init(json)
    for (index, outcome) in try json.objects("outcomes").enumerated() {
      guard case .conflict(let records) = outcomes[index] else { continue }
      // `at` names records without their values. A receipt of an earlier server has values in `conflict` instead.
      let references = try outcome.optionalObjects("at")?.map { (place) throws(SyncProblem) in
        SyncRecord(collection: try place.text("in"), id: try place.text("id"), revision: 0)
      }
      outcomes[index] = .conflict(references ?? records.map { SyncRecord(collection: $0.collection, id: $0.id, revision: 0) })
    }
    try check()
  }

  /// The receipt as a server stores it, with conflicts that name their records and hold no values.
  ///
  /// A server stores a receipt for each device. With values, 75 devices that lose against one record of 1 MiB would store it 75 times.
  @_spi(Wire) public var remembered: Data {
    var json = value
    json["outcomes"] = .array(
      outcomes.map { outcome in
        guard case .conflict(let records) = outcome else { return outcome.json }
        // `conflict` stays, although empty: the reader of outcomes requires one of its three members.
        return ["conflict": [], "at": .array(records.map { ["in": .string($0.collection), "id": .string($0.id)] })]
      })
    return json.json
  }

  /// Returns the receipt with the current records of its conflicts.
  ///
  /// - Parameters:
  ///   - bytes: The most bytes of all values. A record that does not fit is left out and comes with the changes.
  ///   - current: Returns the record of a reference, or `nil` if its value does not fit.
  @_spi(Wire) public func filled(bytes: Int = conflictBytes, from current: (SyncRecord) -> SyncRecord?) -> SyncReceipt {
    // One limit for all outcomes. A limit for each would let a push with many groups fill every later page.
    var (receipt, room) = (self, bytes)
    for (index, outcome) in outcomes.enumerated() {
      guard case .conflict(let references) = outcome else { continue }
      receipt.outcomes[index] = .conflict(
        references.compactMap { reference in
          guard let record = current(reference) else { return nil }
          let size = record.value?.count ?? 0
          // Skipped, and the search goes on: a smaller record behind may fit.
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
  /// History of the server.
  public var history: String
  /// Server's clock, in milliseconds since 1970.
  public var now: SyncMilliseconds
  /// Number, name and outcomes of the push.
  public var receipt: SyncReceipt

  /// Creates an answer.
  public init(history: String, now: SyncMilliseconds, receipt: SyncReceipt) {
    self.history = history
    self.now = now
    self.receipt = receipt
  }

  /// Reads an answer from JSON.
  ///
  /// - Throws: `.malformed`, naming the member.
  public init(json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    history = try json.text("history")
    now = try json.number("now")
    // From the same object: on the wire, the members of the receipt lie beside `history` and `now`.
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
