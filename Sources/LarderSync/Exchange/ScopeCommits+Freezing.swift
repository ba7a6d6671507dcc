internal import Foundation
internal import Larder
@_spi(Wire) internal import LarderWire

extension ScopeCommits {
  /// Largest number of records in one push.
  static let recordLimit = 500
  /// Largest number of value bytes in one push: 1 MiB.
  ///
  /// A single larger record is still sent.
  static let byteLimit = 1 << 20

  /// Bounds of the next push, as earlier refusals have shown them.
  struct Room {
    /// Largest number of records of a push with several groups.
    ///
    /// A group is the records of one transaction. A group with more records goes in a push of its own.
    var most = Int.max
    /// Records whose groups have no room at the server, even alone.
    var oversized: Set<RecordAddress> = []
  }

  /// Builds the next push and stores it as the push in flight, which is sent until its outcome is known.
  ///
  /// Edits that lead back to the server's value are dropped.
  /// - Parameters:
  ///   - candidates: Keys of entries that may have edits. These are whole groups, unless one is larger than the limit.
  ///   - limit: The most records of the push. A larger group is divided.
  ///   - room: The bounds of the push, as earlier refusals have shown them.
  ///   - onlySmaller: Whether to send only groups that need no more room at the server: deletions, and values that are not longer.
  /// - Returns: The state with the push, or without one if there is nothing to send. Also whether the push has only a part of a group.
  func freeze(
    _ candidates: [RecordKey], limit: Int, room: Room = Room(), onlySmaller: Bool = false, _ state: ScopeState,
    in pending: inout PendingState
  ) throws(RepositoryError) -> (state: ScopeState, isDivided: Bool) {
    var found: [Edit] = []
    var (growth, inserted): ([RecordAddress: Int], Set<RecordAddress>) = ([:], [])
    // Sorted, so that equal edits make equal pushes.
    for key in candidates.sorted() {
      guard let entry = try entry(key, in: pending), entry.scope == scope, let edits = entry.edits, !edits.isParked,
        let address = SyncEntry.address(key), let collection = pending.collection(named: address.collection)
      else { continue }
      if isBeyondLimits(address.key, in: collection, of: pending) {
        try parkUnsendable(entry, key, at: address, code: Self.beyondLimits, detail: Self.beyondLimitsDetail, in: &pending)
        continue
      }
      var local = pending.stored(address.key, in: collection)
      // With revision 0 the server has no such record, and even an unchanged one is sent.
      guard local != edits.base || (local != nil && entry.revision == 0) else {
        try forget(entry, key, at: address.key, in: collection, of: &pending)
        continue
      }
      if let value = local, let coder = pending.tracking(of: collection)?.coder, value.schemaVersion < coder.schemaVersion {
        // The background migration may not have reached the record, and the scope may refuse older versions.
        do throws(RepositoryError) { local = try coder.broughtUp(value, key: address.key) } catch {}  // then sent as it is
        try put(local, for: address.key, in: collection, of: &pending)
      }
      // A deletion carries the version of the app that deletes. Version 1 would be refused by a scope with a lowest version.
      let version = local?.schemaVersion ?? pending.tracking(of: collection)?.coder.schemaVersion ?? edits.base?.schemaVersion ?? 1
      let record = PushedRecord(
        collection: address.collection, id: address.key.text, base: entry.revision, version: version, stamp: edits.stamp, value: local?.json
      )
      do throws(SyncProblem) {
        try record.check()
        try record.checkNames(in: scope)
      } catch {
        // The server would refuse the whole push for this record.
        try parkUnsendable(entry, key, at: address, code: Self.malformed, detail: error.description, in: &pending)
        continue
      }
      found.append(Edit(record: record, groups: edits.groups))
      // The server counts stored bytes, so an edit needs only the difference to the base.
      growth[record.address] = (local?.json.count ?? 0) - (edits.base?.json.count ?? 0)
      if local != nil, edits.base == nil { inserted.insert(record.address) }
    }
    var joined = Self.joined(found)
    // Whole groups: a transaction with one growing record cannot be accepted in part.
    if onlySmaller { joined.removeAll { $0.contains { inserted.contains($0.address) || growth[$0.address, default: 0] > 0 } } }
    if !room.oversized.isEmpty {
      let sized = joined.map { group in
        (
          records: group.count { inserted.contains($0.address) }, bytes: group.reduce(0) { $0 + growth[$1.address, default: 0] },
          group: group
        )
      }
      let refused = sized.filter { $0.group.contains { room.oversized.contains($0.address) } }
      // A group that needs at least as much as a refused one comes last, since the server will hardly have room for it. Edits come before
      // insertions: a server may have room for bytes and not for records.
      let ranked = sized.compactMap { (some) -> (rank: (Int, Int, Int), group: [PushedRecord])? in
        if some.group.contains(where: { room.oversized.contains($0.address) }) { return nil }
        let isLarger = refused.contains { $0.records <= some.records && $0.bytes <= some.bytes }
        return ((isLarger ? 1 : 0, some.records > 0 ? 1 : 0, some.bytes), some.group)
      }
      joined = ranked.sorted { $0.rank < $1.rank }.map(\.group)
    }
    var state = state
    // A record of the group that is sent in parts may have no edit left, and then no push would ever remove it from the group.
    if let cut = state.cut {
      for key in cut.keys where try entry(key, in: pending)?.edits?.isParked != false { state.cut?.keys.remove(key) }
      if state.cut?.keys.isEmpty == true { state.cut = nil }
    }
    let (groups, isDivided) = Self.fitting(joined, limit: limit, most: room.most, cut: state.cut)
    guard !groups.isEmpty else { return (state, false) }
    // The number and the token stay with the push. The server recognises a repeated push by them and does not apply it twice.
    state.flight = SyncPush(
      history: state.history, device: state.device, seq: state.seq + 1, token: UUID().uuidString, clock: clock.now.milliseconds,
      groups: groups)
    try store(state, in: &pending)
    return (state, isDivided)
  }

  /// Drops edits that lead back to their base, the server's value.
  ///
  /// A newer server value that was held beside them is then applied.
  private func forget(
    _ entry: SyncEntry, _ entryKey: RecordKey, at key: RecordKey, in collection: Int, of pending: inout PendingState
  ) throws(RepositoryError) {
    guard var edits = entry.edits else { return }
    var clean = entry
    clean.edits = nil
    var value = edits.base
    if let held = edits.held {
      (value, clean.revision) = (held.value, held.revision)
      try put(value, for: key, in: collection, of: &pending)
      try release(&edits, entryKey, in: &pending)
    }
    try store(clean, for: entryKey, hasRecord: value != nil, in: &pending)
  }

  /// Sets edits aside that cannot be sent, because the record is over a limit of the store or out of the bounds of the wire.
  private func parkUnsendable(
    _ entry: SyncEntry, _ entryKey: RecordKey, at address: RecordAddress, code: String, detail: String, in pending: inout PendingState
  ) throws(RepositoryError) {
    var entry = entry
    entry.edits?.isParked = true
    try pending.storeUnread(entry.stored, for: entryKey, in: records)
    try reject(entryKey, of: address.key, in: address.collection, code: code, detail: detail, in: &pending)
  }

  /// A record to push, with the groups of its edits.
  private struct Edit {
    let record: PushedRecord
    let groups: [UInt64]
  }

  /// Returns the edits joined to groups that share no transaction with each other, older groups first.
  private static func joined(_ edits: [Edit]) -> [[PushedRecord]] {
    // Union-find: a record that was edited in two transactions joins both to one group.
    var parents: [UInt64: UInt64] = [:]
    func root(_ group: UInt64) -> UInt64 {
      var group = group
      while let parent = parents[group], parent != group { group = parent }
      return group
    }
    for edit in edits {
      guard let first = edit.groups.first else { continue }
      for group in edit.groups {
        let (left, right) = (root(first), root(group))
        // The smaller number is the older transaction, by which the groups are ordered below.
        if left != right { parents[max(left, right)] = min(left, right) }
      }
    }
    var members: [UInt64: [PushedRecord]] = [:]
    var alone: [[PushedRecord]] = []
    for edit in edits {
      if let first = edit.groups.first { members[root(first), default: []].append(edit.record) } else { alone.append([edit.record]) }
    }
    return members.sorted { $0.key < $1.key }.map(\.value) + alone
  }

  /// Returns the groups of one push, in the given order.
  ///
  /// A group that is larger than its limit is cut. The server may then accept the part without the rest.
  /// - Parameters:
  ///   - most: The most records of a push with several groups.
  ///   - cut: The group that the server has refused although it was sent alone.
  private static func fitting(
    _ groups: [[PushedRecord]], limit pushLimit: Int, most: Int, cut: ScopeState.Cut?
  ) -> (groups: [[PushedRecord]], isDivided: Bool) {
    var fitting: [[PushedRecord]] = []
    var (count, bytes) = (0, 0)
    for group in groups {
      let size = group.reduce(0) { $0 + ($1.value?.count ?? 0) }
      let limit = min(pushLimit, cut?.limit(of: group) ?? pushLimit)
      // A group that must be cut, or that does not fit beside the others, waits for a later push.
      if count > 0, count + group.count > min(pushLimit, most) || group.count > limit || bytes + size > byteLimit { break }
      if group.count <= limit, size <= byteLimit {
        fitting.append(group)
      } else {
        var part: [PushedRecord] = []
        for record in group where part.count < limit {
          // At least one record, or a record over the limit of bytes could never be sent.
          if !part.isEmpty, bytes + (record.value?.count ?? 0) > byteLimit { break }
          bytes += record.value?.count ?? 0
          part.append(record)
        }
        return ([part], part.count < group.count)
      }
      count += group.count
      bytes += size
    }
    return (fitting, false)
  }
}
