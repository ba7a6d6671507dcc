internal import LarderWire

extension PushTransaction {
  /// Result of writing the groups of a push.
  struct Written {
    /// One outcome for each group.
    ///
    /// Conflicts only name their records.
    var outcomes: [SyncOutcome] = []
    /// Newest commit of the scope after the push.
    var head: Int
    /// Newest time stamp of the device's records.
    var stamp: Int
    /// Changes of the usage of devices, by the UTF-8 bytes of the device's name.
    var usage: [[UInt8]: StoredUsage] = [:]
    /// Records and bytes that the push adds to the scope, with those of its receipt, whichever identity they count for.
    var growth = StoredUsage()
  }

  /// Writes each group whose records are at their base, the revision that the device has edited, as a commit of its own.
  ///
  /// Groups are judged in order, on the stored revisions and on the writes of the groups before them. So all bases are read at once before
  /// that, and the writes that remain are made at once afterwards.
  func write(from head: Int, stamp previous: Int) throws(StoreError) -> Written {
    var result = Written(head: head, stamp: previous)
    let stored = try RecordRow.revisions(connection, scope: scope, at: Set(considered.joined().map(\.place)))
    var written: [RecordPlace: SyncRecord] = [:]
    for (index, group) in push.groups.enumerated() {
      if let reason = rejection(index) {
        result.outcomes.append(.rejected(code: reason.code, detail: reason.detail))
        continue
      }
      // A tombstone has base 0, so that a record can be inserted again after its deletion.
      let isAtBase = group.allSatisfy { record in
        record.base == written[record.place].map { $0.value == nil ? 0 : $0.revision } ?? stored[record.place]?.base ?? 0
      }
      if !isAtBase {
        // Names only: stored values would let devices under invented names fill the database.
        result.outcomes.append(.conflict(group.map { SyncRecord(collection: $0.collection, id: $0.id, revision: 0) }))
        continue
      }
      result.head += 1
      for record in group {
        // Corrects the device's clock by the server's. Stamps of a device never go back and are never in the future.
        let stamp = min(max(record.stamp + now - push.clock, previous), now)
        result.stamp = max(result.stamp, stamp)
        written[record.place] = SyncRecord(
          collection: record.collection, id: record.id, revision: result.head, version: record.version, stamp: stamp, writer: push.device,
          value: record.value)
      }
      result.outcomes.append(.accepted(result.head))
    }
    // Written in the order of pages, so that records that are read together lie together.
    let sorted = written.values.sorted { ($0.revision, $0.collection, $0.id) < ($1.revision, $1.collection, $1.id) }
    try RecordRow.write(sorted, connection, scope: scope, now: now)
    for (place, record) in written {
      let (old, bytes) = (stored[place], record.storedBytes)
      result.usage[Array(push.device.utf8), default: StoredUsage()] += StoredUsage(records: 1, bytes: bytes)
      // A revision with 0 bytes counts for no device: its device was forgotten, or it is older than the counts.
      if let old, old.bytes > 0 {
        result.usage[Array(old.writer.utf8), default: StoredUsage()] += StoredUsage(records: -1, bytes: -old.bytes)
      }
      // A tombstone is never larger than the record that it replaces.
      if old == nil || record.value != nil { result.growth += StoredUsage(records: old == nil ? 1 : 0, bytes: bytes - (old?.bytes ?? 0)) }
    }
    return result
  }

  private func rejection(_ index: Int) -> SyncRejectionReason? { index < rejections.count ? rejections[index] : nil }

  /// Groups that the app's validator does not refuse.
  private var considered: [[PushedRecord]] { push.groups.enumerated().filter { rejection($0.offset) == nil }.map(\.element) }
}

extension PushedRecord {
  /// Place of the record within its scope.
  fileprivate var place: RecordPlace { RecordPlace(collection: collection, id: id) }
}
