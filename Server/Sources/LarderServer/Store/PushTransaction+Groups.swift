internal import LarderSync

extension PushTransaction {
  /// The outcome of a group, as far as it is known before the records of conflicts are read.
  private enum Judgement {
    case decided(SyncOutcome)
    /// A conflict: the places of the records, with those that this push itself has written before.
    case conflict([(place: RecordPlace, written: SyncRecord?)])
  }

  /// The most bytes of values that the outcomes of a push have together: each device of a scope keeps those of its newest push.
  private static let outcomeBytes = 1 << 20

  /// Writes the groups that are at their base, each with a commit number of its own.
  ///
  /// The groups are judged one after another on what is stored and what the groups before them write. So all bases are read at once before,
  /// what lost is read at once behind them, and what remains of the writes is written at once at the end.
  func write(from head: Int, stamp previous: Int) throws(StoreError) -> (outcomes: [SyncOutcome], head: Int, stamp: Int) {
    var (head, newest) = (head, previous)
    let bases = try RecordRow.revisions(connection, scope: scope, at: Set(considered.joined().map(\.place)))
    var written: [RecordPlace: SyncRecord] = [:]
    var judgements: [Judgement] = []
    for (index, group) in push.groups.enumerated() {
      if let reason = rejection(index) {
        judgements.append(.decided(.rejected(code: reason.code, detail: reason.detail)))
        continue
      }
      let isAtBase = group.allSatisfy { record in
        let revision = written[record.place].map { $0.value == nil ? 0 : $0.revision } ?? bases[record.place] ?? 0
        return record.base == revision
      }
      if !isAtBase {
        judgements.append(.conflict(group.map { ($0.place, written[$0.place]) }))
        continue
      }
      head += 1
      for record in group {
        let stamp = min(max(record.stamp + now - push.clock, previous), now)
        newest = max(newest, stamp)
        written[record.place] = SyncRecord(
          collection: record.collection, id: record.id, revision: head, version: record.version, stamp: stamp, writer: push.device,
          value: record.value)
      }
      judgements.append(.decided(.accepted(head)))
    }
    let outcomes = try outcomes(of: judgements, bases)
    // In one order, so that what is written lies as it is read.
    let sorted = written.values.sorted { ($0.revision, $0.collection, $0.id) < ($1.revision, $1.collection, $1.id) }
    try RecordRow.write(sorted, connection, scope: scope, now: now)
    return (outcomes, head, newest)
  }

  /// Returns the outcomes, with the records that conflicts lost against; one that was never there, or is forgotten, has revision 0.
  ///
  /// Values that do not fit are left out with their records, and come with the changes: an outcome is kept, and is part of each page.
  private func outcomes(of judgements: [Judgement], _ bases: [RecordPlace: Int]) throws(StoreError) -> [SyncOutcome] {
    var unread: Set<RecordPlace> = []
    for case .conflict(let records) in judgements { for record in records where record.written == nil { unread.insert(record.place) } }
    let stored = try RecordRow.records(connection, scope: scope, at: unread, valueBytes: Self.outcomeBytes)
    var room = Self.outcomeBytes
    return judgements.map { judgement in
      switch judgement {
      case .decided(let outcome): return outcome
      case .conflict(let records):
        return .conflict(
          records.compactMap { record in
            if let found = record.written ?? stored[record.place] {
              let size = found.value?.count ?? 0
              guard size <= room else { return nil }
              room -= size
              return found
            }
            if bases[record.place] != nil { return nil }
            return SyncRecord(collection: record.place.collection, id: record.place.id, revision: 0)
          })
      }
    }
  }

  private func rejection(_ index: Int) -> SyncRejectionReason? { index < rejections.count ? rejections[index] : nil }

  /// The groups that are not refused.
  private var considered: [[PushedRecord]] { push.groups.enumerated().filter { rejection($0.offset) == nil }.map(\.element) }
}

extension PushedRecord {
  /// The place of the record within its scope.
  fileprivate var place: RecordPlace { RecordPlace(collection: collection, id: id) }
}
