internal import Foundation
internal import Larder
internal import TestSupport

/// Reading single records, and all of them.
extension World {
  var places: LocalRepository<Place> { opened.places }
  var anyID: Int { random.int(Place.ids) }

  func find() async throws {
    let id = anyID
    let found = try await places.find(by: id)
    try expect(found == model.places[id], "place \(id) is \(String(describing: found)), not \(String(describing: model.places[id]))")
  }

  func count() async throws {
    let count = try await places.count()
    try expect(count == model.places.count, "\(count) places instead of \(model.places.count)")
    let notes = try await opened.notes.count()
    try expect(notes == model.notes.count, "\(notes) notes instead of \(model.notes.count)")
  }

  func readSnapshot() throws {
    let snapshot = places.snapshot
    let id = anyID
    let found = try snapshot.find(by: id)
    try expect(found == model.places[id], "a snapshot has \(String(describing: found)), not \(String(describing: model.places[id]))")
    try expect(snapshot.count == model.places.count, "a snapshot has \(snapshot.count) places, not \(model.places.count)")
    let revision = snapshot.revision.number
    try expect(revision == model.revision, "the store is at commit \(revision), not \(model.revision)")
  }

  func readRevision() throws {
    let id = anyID
    let revision = places.revision(of: id)?.number
    try expect(revision == model.revisions[id], "place \(id) is of commit \(revision ?? 0), not \(model.revisions[id] ?? 0)")
  }

  func findNote() async throws {
    let id = random.int(Note.ids)
    let found = try await opened.notes.find(by: id)
    try expect(found == model.notes[id], "note \(id) is \(String(describing: found)), not \(String(describing: model.notes[id]))")
  }

  func compareAll() async throws {
    try compareContents("")
    let all = try await places.loadAll()
    let wanted = model.places.values.sorted { $0.id < $1.id }
    try expect(all == wanted, "loadAll differs from the dictionary")
  }

  func compareContents(_ moment: String) throws {
    try Self.compare(try opened.contents, model.state, moment)
    let revision = opened.store.snapshot.revision.number
    try expect(revision == model.revision, "\(moment) the store is at commit \(revision), not \(model.revision)")
  }

  static func compare(_ found: Model.State, _ wanted: Model.State, _ moment: String) throws {
    if found == wanted { return }
    let places = Set(found.places.keys).union(wanted.places.keys).filter { found.places[$0] != wanted.places[$0] }.sorted()
    let notes = Set(found.notes.keys).union(wanted.notes.keys).filter { found.notes[$0] != wanted.notes[$0] }.sorted()
    let first = places.first.map { "\(String(describing: found.places[$0])), not \(String(describing: wanted.places[$0]))" } ?? ""
    let note = notes.first.map { "\(String(describing: found.notes[$0])), not \(String(describing: wanted.notes[$0]))" } ?? ""
    throw Difference("\(moment) places \(places) and notes \(notes) differ: \(first) \(note)")
  }

  // MARK: Snapshots that are kept

  func keepSnapshot() {
    snapshots.append(KeptSnapshot(snapshot: places.snapshot, places: model.places, revision: model.revision))
    if random.chance(30) { bookmark = (model.revision, model.places) }
    if snapshots.count > 4 { snapshots.remove(at: random.int(0..<snapshots.count)) }
  }

  func compareSnapshots() throws {
    for kept in snapshots {
      let all = try kept.snapshot.loadAll(strict: true)
      let wanted = kept.places.values.sorted { $0.id < $1.id }
      try expect(all == wanted, "a snapshot of commit \(kept.revision) has changed")
      try expect(kept.snapshot.revision.number == kept.revision, "a snapshot of commit \(kept.revision) says \(kept.snapshot.revision)")
      let question = Question(using: &random)
      try question.check(try kept.snapshot.fetch(question.query), in: kept.places, mistake: nil)
    }
  }
}

/// A snapshot, and what it held.
struct KeptSnapshot {
  let snapshot: RepositorySnapshot<Place>
  let places: [Int: Place]
  let revision: UInt64
}
