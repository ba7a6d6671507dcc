internal import Foundation
internal import Larder
@_spi(Wire) internal import LarderWire

extension ScopeCommits {
  /// Largest number of records in one push.
  static let recordLimit = 500
  /// Largest number of value bytes in one push: 1 MiB.
  ///
  /// A single record of more than 1 MiB is still sent, in a push of its own.
  static let byteLimit = 1 << 20

  /// Limits of the next push, derived from earlier pushes that the server has refused.
  struct Room {
    /// Largest number of records in a push that holds several transaction groups.
    ///
    /// A group holds the records of one transaction, or of several transactions that share a record. A group with more records than this
    /// limit is sent in a push of its own.
    var most = Int.max
    /// Records of groups that the server has refused for lack of quota, although each group was sent alone.
    var oversized: Set<RecordAddress> = []
  }

  /// Builds the next push and stores it as the push in flight, which is sent again until the server has returned its outcome.
  ///
  /// An edit whose local value equals the server's value again is dropped and not sent.
  /// - Parameters:
  ///   - candidates: Keys of outbox entries that may have unsent edits. The entries form whole transaction groups, unless a group is larger
  ///     than `limit`.
  ///   - limit: The largest number of records in the push. A group with more records is divided over several pushes.
  ///   - room: The limits that follow from earlier pushes that the server has refused.
  ///   - onlySmaller: Whether to send only groups that need no more storage at the server: deletions, and values that are not longer than
  ///     the server's values.
  /// - Returns: The scope's state with the push in flight, or without one if no edit can be sent. `isDivided` is true if the push holds
  ///   only a part of a group.
  func freeze(
    _ candidates: [RecordKey], limit: Int, room: Room = Room(), onlySmaller: Bool = false, _ state: ScopeState,
    in pending: inout PendingState
  ) throws(RepositoryError) -> (state: ScopeState, isDivided: Bool) {
    var found: [Edit] = []
    var (growth, inserted): ([RecordAddress: Int], Set<RecordAddress>) = ([:], [])
    // The keys are sorted, so that the same edits always give the same groups in the same order.
    for key in candidates.sorted() {
      guard let entry = try entry(key, in: pending), entry.scope == scope, let edits = entry.edits, !edits.isParked,
        let address = SyncEntry.address(key), let collection = pending.collection(named: address.collection)
      else { continue }
      if try isBeyondLimits(address.key, in: collection, of: pending) {
        try parkUnsendable(entry, key, at: address, code: Self.beyondLimits, detail: Self.beyondLimitsDetail, in: &pending)
        continue
      }
      var local = try pending.stored(address.key, in: collection)
      // Revision 0 means that the server lacks the record, so an existing record is sent even if it equals its base.
      guard local != edits.base || (local != nil && entry.revision == 0) else {
        try forget(entry, key, at: address.key, in: collection, of: &pending)
        continue
      }
      if let value = local, let coder = pending.tracking(of: collection)?.coder, value.schemaVersion < coder.schemaVersion {
        // The background migration may not have migrated this record yet, and the scope may refuse records of an older schema version.
        do throws(RepositoryError) { local = try coder.broughtUp(value, key: address.key) } catch {}  // on failure the old value is sent
        try put(local, for: address.key, in: collection, of: &pending)
      }
      // A deletion is sent with the schema version of the app that deletes. Servers of an earlier release compare a deletion's schema
      // version with the scope's minimum version, and could refuse a deletion of version 1.
      let version = local?.schemaVersion ?? pending.tracking(of: collection)?.coder.schemaVersion ?? edits.base?.schemaVersion ?? 1
      let record = PushedRecord(
        collection: address.collection, id: address.key.text, base: entry.revision, version: version, stamp: edits.stamp, value: local?.json
      )
      do throws(SyncProblem) {
        try record.check()
        try record.checkNames(in: scope)
      } catch {
        // A server refuses the whole push for one record that breaks a bound of the wire format, so such a record is parked: it stays on
        // the device and is not sent.
        try parkUnsendable(entry, key, at: address, code: Self.malformed, detail: error.description, in: &pending)
        continue
      }
      found.append(Edit(record: record, groups: edits.groups))
      // A server's quota counts stored bytes, so an edit needs only the difference between its value and the base.
      growth[record.address] = (local?.json.count ?? 0) - (edits.base?.json.count ?? 0)
      if local != nil, edits.base == nil { inserted.insert(record.address) }
    }
    var joined = Self.joined(found)
    // A record that needs more storage excludes its whole group, since the server accepts all records of a transaction or none.
    if onlySmaller { joined.removeAll { $0.contains { inserted.contains($0.address) || growth[$0.address, default: 0] > 0 } } }
    if !room.oversized.isEmpty {
      let sized = joined.map { group in
        (
          records: group.count { inserted.contains($0.address) }, bytes: group.reduce(0) { $0 + growth[$1.address, default: 0] },
          group: group
        )
      }
      let refused = sized.filter { $0.group.contains { room.oversized.contains($0.address) } }
      // A group that adds at least as many records and bytes as a refused group is sent last, since it probably exceeds the server's quota
      // too. Edits come before insertions, since a quota may have room for more bytes and not for more records.
      let ranked = sized.compactMap { (some) -> (rank: (Int, Int, Int), group: [PushedRecord])? in
        if some.group.contains(where: { room.oversized.contains($0.address) }) { return nil }
        let isLarger = refused.contains { $0.records <= some.records && $0.bytes <= some.bytes }
        return ((isLarger ? 1 : 0, some.records > 0 ? 1 : 0, some.bytes), some.group)
      }
      joined = ranked.sorted { $0.rank < $1.rank }.map(\.group)
    }
    var state = state
    // When a record of a group that is sent in parts was pushed, `settleCut(by:)` removes its key from the group. A record whose edit was
    // dropped or parked is never pushed, so its key is removed from the group before the push is built.
    if let cut = state.cut {
      for key in cut.keys where try entry(key, in: pending)?.edits?.isParked != false { state.cut?.keys.remove(key) }
      if state.cut?.keys.isEmpty == true { state.cut = nil }
    }
    let (groups, isDivided) = Self.fitting(joined, limit: limit, most: room.most, cut: state.cut)
    guard !groups.isEmpty else { return (state, false) }
    // The number and the token are stored with the push. The server compares the number and the token of a push with those of the device's
    // newest push, so that it does not apply a repeated push twice.
    state.flight = SyncPush(
      history: state.history, device: state.device, seq: state.seq + 1, token: UUID().uuidString, clock: clock.now.milliseconds,
      groups: groups)
    try store(state, in: &pending)
    return (state, isDivided)
  }

  /// Drops the edits of a record whose local value again equals the base of the edits, which is the server's value.
  ///
  /// If the outbox entry holds a newer server value beside the edits, that value is stored as the record.
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

  /// Parks edits that cannot be sent, because the record is over a limit of the store or breaks a bound of the wire format.
  ///
  /// Parked edits stay on the device and are left out of pushes. A rejection reports the parked edits to the user.
  private func parkUnsendable(
    _ entry: SyncEntry, _ entryKey: RecordKey, at address: RecordAddress, code: String, detail: String, in pending: inout PendingState
  ) throws(RepositoryError) {
    var entry = entry
    entry.edits?.isParked = true
    try pending.storeUnread(entry.stored, for: entryKey, in: records)
    try reject(entryKey, of: address.key, in: address.collection, code: code, detail: detail, in: &pending)
  }

  /// A record to push, with the transaction groups that its edits belong to.
  private struct Edit {
    let record: PushedRecord
    let groups: [UInt64]
  }

  /// Joins edits to groups so that no two groups share a transaction, and returns the groups with the oldest group first.
  ///
  /// The edits of records that existed before their collection was synced have no transaction and come last.
  private static func joined(_ edits: [Edit]) -> [[PushedRecord]] {
    // Union-find: a record that was edited in two transactions joins the two transactions into one group.
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
        // The smaller group number belongs to the older transaction, and the joined groups are sorted by their smallest number.
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

  /// Returns the leading groups that fit in one push, in the given order.
  ///
  /// Of a group that is larger than its limit, only the first records are returned. The server may then accept one part of a transaction
  /// and refuse another.
  /// - Parameters:
  ///   - most: The largest number of records in a push that holds several groups.
  ///   - cut: The group that the server has refused although it was sent alone.
  private static func fitting(
    _ groups: [[PushedRecord]], limit pushLimit: Int, most: Int, cut: ScopeState.Cut?
  ) -> (groups: [[PushedRecord]], isDivided: Bool) {
    var fitting: [[PushedRecord]] = []
    var (count, bytes) = (0, 0)
    for group in groups {
      let size = group.reduce(0) { $0 + ($1.value?.count ?? 0) }
      let limit = min(pushLimit, cut?.limit(of: group) ?? pushLimit)
      // A group that must be divided, or that does not fit beside the groups chosen so far, is left for a later push.
      if count > 0, count + group.count > min(pushLimit, most) || group.count > limit || bytes + size > byteLimit { break }
      if group.count <= limit, size <= byteLimit {
        fitting.append(group)
      } else {
        var part: [PushedRecord] = []
        for record in group where part.count < limit {
          // A part of a group holds at least one record, since a record over `byteLimit` could never be sent otherwise.
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
