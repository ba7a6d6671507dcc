internal import Foundation
internal import Larder
internal import LarderWire
internal import Synchronization

/// A device's sync state for one scope: its read position and its push in flight.
struct ScopeState: Sendable, Hashable {
  /// UUID of the device towards the server.
  ///
  /// It changes with each history of the server, and when the store turns out to be a copy.
  var device = UUID().uuidString
  /// Identifier of the server's history, or `nil` before the first exchange.
  ///
  /// A server that was restored from a backup has a new one.
  var history: String?
  /// Last commit of the scope up to which all changes were received.
  var checkpoint = 0
  /// Number of the newest push with a known outcome.
  var seq = 0
  /// Push in flight, or with an unknown outcome.
  ///
  /// It is sent again unchanged, apart from its clock.
  var flight: SyncPush?
  /// The full pass under way.
  var pass: Pass?
  /// Number of full passes started so far.
  var passes = 0
  /// Largest number of records of a push with several groups, while the server accepts fewer than usual.
  ///
  /// A group with more records goes in a push of its own.
  var recordLimit: Int?
  /// Group that the server has refused although it was sent alone.
  ///
  /// Its records that are still unsent are listed.
  var cut: Cut?
  /// Milliseconds by which the server's clock is ahead of the device's, as of the last answer to a push.
  var skew: SyncMilliseconds?
  /// Collections that are part of the changes received up to ``checkpoint``.
  var collections: [String] = []
  /// Schema versions of the collections in the app that last prepared the scope.
  var versions: [String: Int] = [:]
  /// Number of outcomes and pages applied so far.
  ///
  /// A page requested before another one was applied is out of date, and is dropped.
  var turn = 0

  /// A reading of the whole scope from its first commit, which finds records that were deleted while the device was away.
  struct Pass: Sendable, Hashable {
    /// Horizon at the start of the pass, or `nil` until the server has sent it.
    ///
    /// Tombstones up to the horizon may have been purged.
    var horizon: Int?
    /// Last commit that the pass has read.
    var position = 0
    /// True if the records on this device belong to another history than the server's.
    var isNewHistory = false
  }

  /// A group that the server refuses as a whole, for another reason than lack of room, so that it is sent in parts.
  struct Cut: Sendable, Hashable {
    /// Keys of the outbox entries of its unsent records.
    var keys: Set<RecordKey>
    /// Largest number of its records that are sent together.
    var limit: Int

    /// Returns the largest number of records of a group that are sent together.
    func limit(of group: [PushedRecord]) -> Int { group.contains { keys.contains($0.entryKey) } ? limit : ScopeCommits.recordLimit }
  }

  /// Number of records in ``flight``, or `nil` without a push in flight.
  var flightCount: Int? { flight?.groups.joined().count }

  init() {}

  /// Starts a full pass, or starts it over.
  mutating func beginPass(horizon: Int?, isNewHistory: Bool = false) {
    // With a new number, no entry counts as found by the pass, and none has to be rewritten for that.
    passes += 1
    // A restarted pass for a new history stays one, since not all records were compared with that history.
    pass = Pass(horizon: horizon, isNewHistory: isNewHistory || pass?.isNewHistory == true)
  }

  /// Records that the server has refused a group of several records, although it was sent alone.
  ///
  /// The next push has half of its records.
  mutating func cut(_ group: [PushedRecord]) {
    cut = Cut(keys: (cut?.keys ?? []).union(group.map(\.entryKey)), limit: max(1, group.count / 2))
  }

  /// Updates the cut group after the end of a push.
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
    // The server counts pushes for each device. A push in flight was numbered for the old one.
    flight = nil
  }
}

extension ScopeState {
  /// Reads a stored state.
  ///
  /// - Throws: `.corrupted` if it is not a valid state.
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
    // Missing in the state of an earlier version of the app, as are `cut`, `skew` and `versions`.
    recordLimit = json["recordLimit"]?.intValue
    if let cut = json["cut"], let limit = cut["limit"]?.intValue, let keys = cut["keys"]?.arrayValue {
      // A limit of 0 would make pushes without records.
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
      // Without bounds: the app that stored the push may have had others, and refusing it would block the whole scope.
      do throws(SyncProblem) { self.flight = try SyncPush(unchecked: flight.json) } catch { throw unreadable }
    }
  }

  /// The state as a stored value.
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
    // Sorted, so that an equal state has equal bytes.
    if let cut { json["cut"] = ["limit": JSONValue(cut.limit), "keys": .array(cut.keys.map(\.text).sorted().map(JSONValue.string))] }
    if let skew { json["skew"] = JSONValue(skew) }
    if let flight { json["flight"] = flight.value }
    return StoredValue(schemaVersion: 1, json: json.json)
  }
}

/// A cache of the last state of a scope, by its stored bytes.
///
/// Decoding a state is slow while a push is in flight, since the push holds its values.
final class NewestState: Sendable {
  private let known = Mutex<(stored: StoredValue, state: ScopeState)?>(nil)

  /// Returns the state of a stored value.
  ///
  /// Cost: one comparison of the bytes if it is the cached state.
  /// - Throws: `.corrupted` if it is not a valid state.
  func state(of stored: StoredValue) throws(RepositoryError) -> ScopeState {
    if let known = known.withLock({ $0 }), known.stored == stored { return known.state }
    let state = try ScopeState(stored)
    known.withLock { $0 = (stored, state) }
    return state
  }

  /// Returns a state as a stored value, and caches it.
  func stored(_ state: ScopeState) -> StoredValue {
    let stored = state.stored
    known.withLock { $0 = (stored, state) }
    return stored
  }
}
