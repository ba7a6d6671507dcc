import Synchronization

@testable import Larder

/// A change set of registers as a value that can be compared; changes in the order of ids.
struct Told: Hashable, CustomStringConvertible {
  struct Change: Hashable {
    let id: Int
    let kind: ChangeSet<Register>.Change.Kind
    var old: Int?
    var new: Int?

    static func inserted(_ id: Int, to new: Int) -> Change { Change(id: id, kind: .inserted, new: new) }
    static func updated(_ id: Int, from old: Int, to new: Int) -> Change { Change(id: id, kind: .updated, old: old, new: new) }
    static func deleted(_ id: Int, from old: Int? = nil) -> Change { Change(id: id, kind: .deleted, old: old) }
    static func upserted(_ id: Int, to new: Int) -> Change { Change(id: id, kind: .upserted, new: new) }
  }

  let revision: UInt64
  let changes: [Change]

  init(_ revision: UInt64, _ changes: [Change]) {
    self.revision = revision
    self.changes = changes
  }

  init(_ set: ChangeSet<Register>) {
    self.init(
      set.revision.number,
      set.changes.map { Change(id: $0.id ?? -1, kind: $0.kind, old: $0.old?.value, new: $0.new?.value) }.sorted { $0.id < $1.id })
  }

  var description: String { "revision \(revision): \(changes)" }
}

/// The contents that a reader makes of the sets it is told.
struct Replica: Equatable {
  struct Surprise: Error, CustomStringConvertible {
    let description: String
  }

  private(set) var values: [Int: Int] = [:]
  private(set) var revision: UInt64 = 0

  init() {}

  /// The state of a snapshot.
  init(_ snapshot: RepositorySnapshot<Register>) {
    for register in snapshot.loadAll() { values[register.id] = register.value }
    revision = snapshot.revision.number
  }

  /// Applies a set, and throws when it does not fit what was told before.
  mutating func apply(_ set: ChangeSet<Register>) throws {
    let told = Told(set)
    guard told.revision > revision, !told.changes.isEmpty else { throw Surprise(description: "after \(revision) comes \(told)") }
    guard Set(told.changes.map(\.id)).count == told.changes.count else { throw Surprise(description: "a record twice: \(told)") }
    for change in told.changes {
      let fits =
        switch change.kind {
        case .inserted: values[change.id] == nil && change.new != nil
        case .updated: values[change.id] != nil && values[change.id] == change.old && change.new != nil
        case .deleted: change.new == nil && (change.old == nil || values[change.id] == change.old)
        case .upserted: change.new != nil && change.old == nil
        }
      guard fits else { throw Surprise(description: "\(change) does not fit \(String(describing: values[change.id]))") }
      values[change.id] = change.new
    }
    revision = told.revision
  }
}

/// A value that one task puts and another looks at.
final class Slot<Value: Sendable>: Sendable {
  private let content = Mutex<Value?>(nil)
  var value: Value? { content.withLock { $0 } }
  func set(_ value: Value) { content.withLock { $0 = value } }
}
