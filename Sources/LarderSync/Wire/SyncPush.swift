public import Foundation
@_spi(Inspection) internal import Larder

/// The edits that a device sends at once: what it sends again, but for the clock as it is, until it knows the outcome.
public struct SyncPush: Sendable, Hashable {
  /// The history of the server that the device knows; `nil` before the first exchange.
  public var history: String?
  /// The device, a UUID.
  public var device: String
  /// The number of the push: 1 for the device's first in the scope, and one more each time an outcome is known.
  public var seq: Int
  /// The name of this push, made by chance: two stores that were one file send the same numbers, and never the same name.
  public var token: String
  /// The device's clock when it is sent, in milliseconds since 1970.
  public var clock: SyncMilliseconds
  /// The records, in groups that are accepted whole or not at all.
  public var groups: [[PushedRecord]]

  /// Makes a push.
  public init(history: String?, device: String, seq: Int, token: String, clock: SyncMilliseconds, groups: [[PushedRecord]]) {
    self.history = history
    self.device = device
    self.seq = seq
    self.token = token
    self.clock = clock
    self.groups = groups
  }

  /// Reads a push.
  ///
  /// - Throws: `.malformed`, naming the member, also for a value out of bounds, of the push or of a record.
  public init(json: Data) throws(SyncProblem) {
    try self.init(unchecked: json)
    try check()
  }

  /// Reads a push of this device as it was stored: an app before this one may have stored a record out of bounds.
  init(unchecked json: Data) throws(SyncProblem) {
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

  var value: JSONValue {
    var json: JSONValue = [
      "device": .string(device), "seq": JSONValue(seq), "token": .string(token), "clock": JSONValue(clock),
      "groups": .array(groups.map { ["records": .array($0.map(\.json))] }),
    ]
    if let history { json["history"] = JSONValue(history) }
    return json
  }
}

/// The outcome of one group of a push.
public enum SyncOutcome: Sendable, Hashable {
  /// The records were written, at this commit of the scope.
  case accepted(Int)
  /// A record was not at its base: nothing of the group was written; here is what the server has of its records.
  ///
  /// Of a push, values of 1 MiB in all: a record that does not fit is left out, and comes with the changes.
  case conflict([SyncRecord])
  /// The server refuses the records for good, such as by a rule of the app.
  case rejected(code: String, detail: String)
}

extension SyncOutcome {
  init(_ json: WireObject) throws(SyncProblem) {
    if let revision: Int = try json.optionalNumber("ok") {
      self = .accepted(revision)
    } else if let rejection = try json.optionalObject("rejected") {
      self = .rejected(code: try rejection.text("code"), detail: try rejection.text("detail", default: ""))
    } else {
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

/// The outcomes of a device's newest push, as the server remembers them.
public struct SyncReceipt: Sendable, Hashable {
  /// The number of the push.
  public var seq: Int
  /// The name of the push.
  public var token: String
  /// The outcomes, one for each group.
  public var outcomes: [SyncOutcome]

  /// Makes a receipt.
  public init(seq: Int, token: String, outcomes: [SyncOutcome]) {
    self.seq = seq
    self.token = token
    self.outcomes = outcomes
  }

  /// Reads a receipt.
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
  /// The most bytes of the values that the conflicts of one receipt hold together: a receipt is part of each page.
  @_spi(Wire) public static let conflictBytes = 1 << 20

  /// Reads a receipt from ``remembered``, or from the JSON of a receipt with values.
  ///
  /// The records of its conflicts have revision 0 and no value until ``filled(bytes:from:)``.
  @_spi(Wire) public init(remembered json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    try self.init(json)
    for (index, outcome) in try json.objects("outcomes").enumerated() {
      guard case .conflict(let records) = outcomes[index] else { continue }
      let references = try outcome.optionalObjects("at")?.map { (place) throws(SyncProblem) in
        SyncRecord(collection: try place.text("in"), id: try place.text("id"), revision: 0)
      }
      outcomes[index] = .conflict(references ?? records.map { SyncRecord(collection: $0.collection, id: $0.id, revision: 0) })
    }
    try check()
  }

  /// The receipt as a server stores it: a conflict names its records and holds no value.
  ///
  /// A server stores a receipt for each device. With values, 75 devices that lose against one record of 1 MiB would store it 75 times.
  @_spi(Wire) public var remembered: Data {
    var json = value
    json["outcomes"] = .array(
      outcomes.map { outcome in
        guard case .conflict(let records) = outcome else { return outcome.json }
        return ["conflict": [], "at": .array(records.map { ["in": .string($0.collection), "id": .string($0.id)] })]
      })
    return json.json
  }

  /// Returns the receipt with the records of its conflicts as the server has them now.
  ///
  /// - Parameters:
  ///   - bytes: The most bytes of all values. A record that does not fit is left out, and comes with the changes.
  ///   - current: Returns the record of a reference; `nil` for one whose value does not fit.
  @_spi(Wire) public func filled(bytes: Int = conflictBytes, from current: (SyncRecord) -> SyncRecord?) -> SyncReceipt {
    var (receipt, room) = (self, bytes)
    for (index, outcome) in outcomes.enumerated() {
      guard case .conflict(let references) = outcome else { continue }
      receipt.outcomes[index] = .conflict(
        references.compactMap { reference in
          guard let record = current(reference) else { return nil }
          let size = record.value?.count ?? 0
          guard size <= room else { return nil }
          room -= size
          return record
        })
    }
    return receipt
  }
}

/// The answer to a push.
public struct SyncPushReply: Sendable, Hashable {
  /// The history of the server.
  public var history: String
  /// The server's clock in milliseconds since 1970.
  public var now: SyncMilliseconds
  /// The number of the push, and its outcomes.
  public var receipt: SyncReceipt

  /// Makes an answer.
  public init(history: String, now: SyncMilliseconds, receipt: SyncReceipt) {
    self.history = history
    self.now = now
    self.receipt = receipt
  }

  /// Reads an answer.
  ///
  /// - Throws: `.malformed`, naming the member.
  public init(json: Data) throws(SyncProblem) {
    let json = try WireObject(json)
    history = try json.text("history")
    now = try json.number("now")
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
