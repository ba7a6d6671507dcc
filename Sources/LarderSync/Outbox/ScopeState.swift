internal import Foundation
internal import Larder
internal import LarderWire
internal import Synchronization

/// A device's sync state for one scope: its read position and its push in flight.
struct ScopeState: Sendable, Hashable {
  /// UUID by which the server identifies this device.
  ///
  /// The identifier changes with each new history of the server, and when the store turns out to be a copy of another store.
  var device = UUID().uuidString
  /// Identifier of the server's history, or `nil` before the first exchange.
  ///
  /// A server that was restored from a backup has a new history.
  var history: String?
  /// Last commit of the scope up to which all changes were received.
  var checkpoint = 0
  /// Number of this device's newest push with a known outcome.
  var seq = 0
  /// Push in flight: a push that was built and whose outcome is not known yet.
  ///
  /// The push is sent again unchanged, apart from its `clock`, until its outcome is known.
  var flight: SyncPush?
  /// Full pass (a reading of the whole scope) that is under way, or `nil` for none.
  var pass: Pass?
  /// Number of full passes started so far.
  var passes = 0
  /// Largest number of records in a push that holds several transaction groups, or `nil` for ``ScopeCommits/recordLimit``.
  ///
  /// The server's refusal of a whole push makes the limit smaller. A transaction group with more records than the limit is sent in a push
  /// of its own.
  var recordLimit: Int?
  /// Transaction group that the server has refused although it was sent alone, or `nil` for none.
  ///
  /// The ``Cut`` lists the group's records that are still unsent.
  var cut: Cut?
  /// Milliseconds by which the server's clock is ahead of the device's, as of the last answer to a push.
  var skew: SyncMilliseconds?
  /// Collections whose changes up to ``checkpoint`` were received.
  var collections: [String] = []
  /// Schema versions of the collections in the app that last prepared the scope.
  var versions: [String: Int] = [:]
  /// Number of push outcomes, pages and resets that were applied to the state so far.
  ///
  /// A page that was requested at a smaller `turn` is out of date, and is dropped.
  var turn = 0

  /// A reading of the whole scope from its first commit, which finds records that were deleted while the device was away.
  struct Pass: Sendable, Hashable {
    /// Commit number (horizon) that the server sent when it required the pass, or `nil` for a pass that began for another reason.
    ///
    /// The server may have purged tombstones of commits up to the horizon.
    var horizon: Int?
    /// Last commit that the pass has read.
    var position = 0
    /// True if the records on this device belong to another history than the server's current history.
    var isNewHistory = false
  }

  /// A transaction group that the server refuses as a whole, for another reason than its quota, so that the group is sent in parts.
  struct Cut: Sendable, Hashable {
    /// Keys of the outbox entries of the group's unsent records.
    var keys: Set<RecordKey>
    /// Largest number of the group's records in one push.
    var limit: Int

    /// Returns the largest number of a group's records in one push.
    func limit(of group: [PushedRecord]) -> Int { group.contains { keys.contains($0.entryKey) } ? limit : ScopeCommits.recordLimit }
  }

  /// Number of records in ``flight``, or `nil` without a push in flight.
  var flightCount: Int? { flight?.groups.joined().count }

  init() {}

  /// Starts a full pass, or restarts the pass under way.
  mutating func beginPass(horizon: Int?, isNewHistory: Bool = false) {
    // An outbox entry stores the number of the last pass that has found its record. No entry has the number of a new pass, so at first no
    // record counts as found, and no entry has to be rewritten.
    passes += 1
    // A restarted pass for a new history remains a pass for a new history, since not all records were compared with that history.
    pass = Pass(horizon: horizon, isNewHistory: isNewHistory || pass?.isNewHistory == true)
  }

  /// Marks a group of several records as refused by the server, although the group was sent alone.
  ///
  /// The next push has half of the group's records.
  mutating func cut(_ group: [PushedRecord]) {
    cut = Cut(keys: (cut?.keys ?? []).union(group.map(\.entryKey)), limit: max(1, group.count / 2))
  }

  /// Removes the records of a push that has ended from the group that is sent in parts.
  ///
  /// After a push with a part of the group, the next part may have twice as many records.
  mutating func settleCut(by push: SyncPush) {
    guard let cut else { return }
    let left = cut.keys.subtracting(push.groups.joined().map(\.entryKey))
    if left.count < cut.keys.count { self.cut = left.isEmpty ? nil : Cut(keys: left, limit: min(cut.limit * 2, ScopeCommits.recordLimit)) }
  }

  /// Takes a new device identifier, under which nothing was sent yet.
  mutating func becomeNewDevice() {
    device = UUID().uuidString
    seq = 0
    // The server counts the pushes of each device. A push in flight has a number of the old device, so its edits go into a new push.
    flight = nil
  }
}

extension ScopeState {
  /// Decodes the stored state of a scope.
  ///
  /// - Throws: `.corrupted` if the stored value is not a valid state.
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
    // `recordLimit`, `cut`, `skew` and `versions` are missing in a state that an earlier version of the app has stored.
    recordLimit = json["recordLimit"]?.intValue
    if let cut = json["cut"], let limit = cut["limit"]?.intValue, let keys = cut["keys"]?.arrayValue {
      // A stored limit of 0 would lead to pushes without records.
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
      // The stored push is read without a check of bounds. An earlier version of the app may have had other bounds, and an error for the
      // push would block the whole scope.
      do throws(SyncProblem) { self.flight = try SyncPush(unchecked: flight.json) } catch { throw unreadable }
    }
  }

  /// The state encoded as a stored value.
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
    // The keys are sorted, so that equal cuts are encoded to equal bytes.
    if let cut { json["cut"] = ["limit": JSONValue(cut.limit), "keys": .array(cut.keys.map(\.text).sorted().map(JSONValue.string))] }
    if let skew { json["skew"] = JSONValue(skew) }
    if let flight { json["flight"] = flight.value }
    return StoredValue(schemaVersion: 1, json: json.json)
  }
}

/// A cache of the last decoded state of a scope, with the stored bytes that it was decoded from.
///
/// Decoding a state is slow while a push is in flight, since the push holds the values of its records.
final class NewestState: Sendable {
  private let known = Mutex<(stored: StoredValue, state: ScopeState)?>(nil)

  /// Returns the decoded state of a stored value.
  ///
  /// If the cached state was decoded from the same bytes, the bytes are only compared.
  /// - Throws: `.corrupted` if the stored value is not a valid state.
  func state(of stored: StoredValue) throws(RepositoryError) -> ScopeState {
    if let known = known.withLock({ $0 }), known.stored == stored { return known.state }
    let state = try ScopeState(stored)
    known.withLock { $0 = (stored, state) }
    return state
  }

  /// Returns a state encoded as a stored value, and caches the state with the stored value.
  func stored(_ state: ScopeState) -> StoredValue {
    let stored = state.stored
    known.withLock { $0 = (stored, state) }
    return stored
  }
}
