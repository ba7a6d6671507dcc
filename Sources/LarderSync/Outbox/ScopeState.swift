internal import Foundation
@_spi(Inspection) internal import Larder
internal import Larder
internal import Synchronization

/// The knowledge of a device of a scope: how far it has read, and what it has sent.
struct ScopeState: Sendable, Hashable {
  /// The device towards the server; another one for each history, and when the store turns out to be a copy.
  var device = UUID().uuidString
  /// The history of the server; `nil` before the first exchange.
  var history: String?
  /// The commit of the scope up to which everything was taken.
  var checkpoint = 0
  /// The number of the newest push of which the outcome is known.
  var seq = 0
  /// The push that is on its way, or whose outcome is not known; sent again as it is.
  var flight: SyncPush?
  /// The full pass that is under way.
  var pass: Pass?
  /// The number of full passes that were begun.
  var passes = 0
  /// The most records of a push with several groups, while the server does not take as many as usual.
  ///
  /// A group with more records goes in a push of its own.
  var recordLimit: Int?
  /// The group that the server has refused though it was sent alone, as far as it is not settled.
  var cut: Cut?
  /// The milliseconds by which the server's clock is ahead of the device's, as of the last answer to a push.
  var skew: SyncMilliseconds?
  /// The collections that were taken up to ``checkpoint``.
  var collections: [String] = []
  /// The schema versions of the collections with the app that has last prepared the scope.
  var versions: [String: Int] = [:]
  /// The number of times that an outcome or a page was taken: a page that was asked for before another one was taken is too old.
  var turn = 0

  /// A reading of the whole scope beside the data, to find what was deleted while the device was away.
  struct Pass: Sendable, Hashable {
    /// The horizon with which it began; `nil` until the server has told it.
    var horizon: Int?
    /// The commit up to which it has come.
    var position = 0
    /// Whether the server has another history than the records here are of.
    var isNewHistory = false
  }

  /// A group that the server does not take as a whole, for another reason than the lack of room.
  struct Cut: Sendable, Hashable {
    /// The keys of the entries of its records.
    var keys: Set<RecordKey>
    /// The most records of it that are sent together.
    var limit: Int

    /// Returns the most records of a group that are sent together.
    func limit(of group: [PushedRecord]) -> Int { group.contains { keys.contains($0.entryKey) } ? limit : Ledger.recordLimit }
  }

  /// The number of records in ``flight``; `nil` without one.
  var flightCount: Int? { flight?.groups.joined().count }

  init() {}

  /// Begins a full pass, or begins it again.
  mutating func beginPass(horizon: Int?, isNewHistory: Bool = false) {
    passes += 1
    pass = Pass(horizon: horizon, isNewHistory: isNewHistory || pass?.isNewHistory == true)
  }

  /// Notes a group of several records that the server has refused, though it was sent alone.
  ///
  /// The next push has half of its records.
  mutating func cut(_ group: [PushedRecord]) {
    cut = Cut(keys: (cut?.keys ?? []).union(group.map(\.entryKey)), limit: max(1, group.count / 2))
  }

  /// Notes that a push is settled or set aside.
  ///
  /// If it was a part of the cut group, the next part has twice as many records.
  mutating func settleCut(by push: SyncPush) {
    guard let cut else { return }
    let left = cut.keys.subtracting(push.groups.joined().map(\.entryKey))
    if left.count < cut.keys.count { self.cut = left.isEmpty ? nil : Cut(keys: left, limit: min(cut.limit * 2, Ledger.recordLimit)) }
  }

  /// Becomes another device, which has sent nothing.
  mutating func becomeNewDevice() {
    device = UUID().uuidString
    seq = 0
    flight = nil
  }
}

extension ScopeState {
  /// Reads a state.
  /// - Throws: `.corrupted` for what is none.
  init(_ stored: StoredValue) throws(RepositoryError) {
    let unreadable = RepositoryError(
      .corrupted, "expected what sync keeps of a scope, found something else; was larder.sync.scopes changed by hand?")
    let json: JSONValue
    do throws(RepositoryError) { json = try JSONValue(json: stored.json) } catch { throw unreadable }
    guard let device = json["device"]?.stringValue, let checkpoint = json["checkpoint"]?.intValue, let seq = json["seq"]?.intValue else {
      throw unreadable
    }
    (self.device, self.checkpoint, self.seq) = (device, checkpoint, seq)
    history = json["history"]?.stringValue
    passes = json["passes"]?.intValue ?? 0
    turn = json["turn"]?.intValue ?? 0
    recordLimit = json["recordLimit"]?.intValue
    if let cut = json["cut"], let limit = cut["limit"]?.intValue, let keys = cut["keys"]?.arrayValue {
      self.cut = Cut(keys: Set(keys.compactMap { $0.stringValue.map(RecordKey.init) }), limit: max(1, limit))
    }
    skew = json["skew"]?.numberValue?.exactly(SyncMilliseconds.self)
    collections = json["collections"]?.arrayValue?.compactMap(\.stringValue) ?? []
    if let object = json["versions"]?.objectValue { for name in object.names { versions[name] = object[name]?.intValue } }
    if let pass = json["pass"] {
      self.pass = Pass(
        horizon: pass["horizon"]?.intValue, position: pass["position"]?.intValue ?? 0,
        isNewHistory: pass["isNewHistory"]?.boolValue ?? false)
    }
    if let flight = json["flight"] {
      do throws(SyncProblem) { self.flight = try SyncPush(unchecked: flight.json) } catch { throw unreadable }
    }
  }

  /// The state as it is stored.
  var stored: StoredValue {
    var json: JSONValue = [
      "device": .string(device), "checkpoint": JSONValue(checkpoint), "seq": JSONValue(seq), "passes": JSONValue(passes),
      "turn": JSONValue(turn), "collections": .array(collections.map(JSONValue.string)),
    ]
    if !versions.isEmpty {
      json["versions"] = [:]
      for (name, version) in versions { json["versions"]?[name] = JSONValue(version) }
    }
    if let history { json["history"] = .string(history) }
    if let pass {
      json["pass"] = ["position": JSONValue(pass.position), "isNewHistory": .bool(pass.isNewHistory)]
      json["pass"]?["horizon"] = pass.horizon.map { JSONValue($0) }
    }
    if let recordLimit { json["recordLimit"] = JSONValue(recordLimit) }
    if let cut { json["cut"] = ["limit": JSONValue(cut.limit), "keys": .array(cut.keys.map(\.text).sorted().map(JSONValue.string))] }
    if let skew { json["skew"] = JSONValue(skew) }
    if let flight { json["flight"] = flight.value }
    return StoredValue(schemaVersion: 1, json: json.json)
  }
}

/// A state of a scope with the bytes that it is stored as: those that are met again need not be read again.
final class NewestState: Sendable {
  private let known = Mutex<(stored: StoredValue, state: ScopeState)?>(nil)

  /// Returns a state that is stored.
  ///
  /// Cost: comparing its bytes, where they are the newest.
  /// - Throws: `.corrupted` for what is none.
  func state(of stored: StoredValue) throws(RepositoryError) -> ScopeState {
    if let known = known.withLock({ $0 }), known.stored == stored { return known.state }
    let state = try ScopeState(stored)
    known.withLock { $0 = (stored, state) }
    return state
  }

  /// Returns a state as it is stored.
  func stored(_ state: ScopeState) -> StoredValue {
    let stored = state.stored
    known.withLock { $0 = (stored, state) }
    return stored
  }
}
