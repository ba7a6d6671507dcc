internal import LarderSync

extension PushTransaction {
  /// The result of writing the groups of a push.
  struct Written {
    /// One outcome for each group.
    ///
    /// Conflicts only name their records.
    var outcomes: [SyncOutcome] = []
    /// The newest commit of the scope.
    var head: Int
    /// The newest stamp of the device's records.
    var stamp: Int
    /// The changes of the stored records, by the bytes of the name of the device that they count for.
    var usage: [[UInt8]: StoredUsage] = [:]
    /// The records and bytes that the push adds to the scope, those of the receipt included, for whichever identity they count.
    var growth = StoredUsage()
  }

  /// Writes the groups that are at their base, each with a commit number of its own.
  ///
  /// The groups are judged one after another on what is stored and what the groups before them write. So all bases are read at once before,
  /// and what remains of the writes is written at once at the end.
  func write(from head: Int, stamp previous: Int) throws(StoreError) -> Written {
    var result = Written(head: head, stamp: previous)
    let stored = try RecordRow.revisions(connection, scope: scope, at: Set(considered.joined().map(\.place)))
    var written: [RecordPlace: SyncRecord] = [:]
    for (index, group) in push.groups.enumerated() {
      if let reason = rejection(index) {
        result.outcomes.append(.rejected(code: reason.code, detail: reason.detail))
        continue
      }
      let isAtBase = group.allSatisfy { record in
        record.base == written[record.place].map { $0.value == nil ? 0 : $0.revision } ?? stored[record.place]?.base ?? 0
      }
      if !isAtBase {
        result.outcomes.append(.conflict(group.map { SyncRecord(collection: $0.collection, id: $0.id, revision: 0) }))
        continue
      }
      result.head += 1
      for record in group {
        let stamp = min(max(record.stamp + now - push.clock, previous), now)
        result.stamp = max(result.stamp, stamp)
        written[record.place] = SyncRecord(
          collection: record.collection, id: record.id, revision: result.head, version: record.version, stamp: stamp, writer: push.device,
          value: record.value)
      }
      result.outcomes.append(.accepted(result.head))
    }
    // In one order, so that what is written lies as it is read.
    let sorted = written.values.sorted { ($0.revision, $0.collection, $0.id) < ($1.revision, $1.collection, $1.id) }
    try RecordRow.write(sorted, connection, scope: scope, now: now)
    for (place, record) in written {
      let (old, bytes) = (stored[place], record.storedBytes)
      result.usage[Array(push.device.utf8), default: StoredUsage()] += StoredUsage(records: 1, bytes: bytes)
      // A revision without bytes counts for nobody: its device is forgotten, or it is older than the counts.
      if let old, old.bytes > 0 {
        result.usage[Array(old.writer.utf8), default: StoredUsage()] += StoredUsage(records: -1, bytes: -old.bytes)
      }
      // A tombstone is never larger than the record in whose place it comes.
      if old == nil || record.value != nil { result.growth += StoredUsage(records: old == nil ? 1 : 0, bytes: bytes - (old?.bytes ?? 0)) }
    }
    return result
  }

  private func rejection(_ index: Int) -> SyncRejectionReason? { index < rejections.count ? rejections[index] : nil }

  /// The groups that are not refused.
  private var considered: [[PushedRecord]] { push.groups.enumerated().filter { rejection($0.offset) == nil }.map(\.element) }
}

extension PushedRecord {
  /// The place of the record within its scope.
  fileprivate var place: RecordPlace { RecordPlace(collection: collection, id: id) }
}
