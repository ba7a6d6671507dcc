internal import Larder

/// The entries with edits that the server has not taken, as far as they were looked at: what is to be sent is found without reading all.
struct DirtyEntries: Sendable {
  /// The finding of a look.
  private struct Mark: Sendable {
    let scope: String
    let isParked: Bool
  }

  private var marks: [RecordKey: Mark] = [:]
  /// The commit up to which entries were looked for.
  private var searched = Revision.zero

  /// The number of entries that are to be sent.
  private(set) var count = 0

  /// Looks at all entries that were written since the last search, and at those that may be gone.
  ///
  /// Cost: a look at each entry; only those that were written are read.
  mutating func search(_ snapshot: StoredSnapshot) {
    guard snapshot.revision > searched, let records = snapshot.collection(named: SyncCollections.records) else { return }
    for key in Array(marks.keys) where !snapshot.has(key, in: records) { look(at: key, nil) }
    snapshot.visit(records, after: searched) { look(at: $0, $1) }
    searched = snapshot.revision
  }

  /// Looks at one entry as it is stored.
  mutating func look(at key: RecordKey, _ stored: StoredValue?) {
    if let known = marks.removeValue(forKey: key), !known.isParked { count -= 1 }
    // What cannot be read is met, and told of, when it is to be sent.
    guard let stored, let entry = SyncEntry(readable: stored), let edits = entry.edits else { return }
    marks[key] = Mark(scope: entry.scope, isParked: edits.isParked)
    if !edits.isParked { count += 1 }
  }

  /// Returns the scope that an entry is to be sent to; `nil` for one that is not.
  func scope(toSend key: RecordKey) -> String? { marks[key].flatMap { $0.isParked ? nil : $0.scope } }

  /// Returns the entries of a scope that are to be sent.
  func keys(of scope: String) -> [RecordKey] { marks.filter { $0.value.scope == scope && !$0.value.isParked }.map(\.key) }

  /// The number of entries with edits, those that the server has refused included.
  var countWithRejected: Int { marks.count }
}
