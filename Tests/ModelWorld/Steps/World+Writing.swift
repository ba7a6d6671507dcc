internal import Foundation
internal import Larder
internal import TestSupport

/// Writing to one repository.
extension World {
  /// A durable write now and then: a sync takes time.
  private var anyDurability: Durability { random.chance(8) ? .durable : .buffered }

  private var anyPlace: Place { Place.random(anyID, using: &random) }

  /// Compares how a write ended, and notes it in the model if it should have been done.
  private func settle(
    _ result: (value: Revision?, code: RepositoryError.Code?), expecting code: RepositoryError.Code?, _ commit: Model.Commit,
    _ durability: Durability
  ) throws {
    try expect(result.code == code, "the write ended with \(Self.text(result.code)), not \(Self.text(code))")
    if code != nil { return }
    model.commit(commit, isDurable: durability == .durable || mistake == .calledDurable)
    if let revision = result.value?.number, revision != 0 {
      try expect(revision == model.revision, "the write is commit \(revision), not \(model.revision)")
    }
  }

  static func text(_ code: RepositoryError.Code?) -> String { code.map(\.description) ?? "success" }

  func save() async throws {
    let (place, durability) = (anyPlace, anyDurability)
    let result = try await attempt { try await places.save(place, ifRevision: nil, durability: durability) }
    let code: RepositoryError.Code? = model.clashes([place]) ? .uniqueViolation : nil
    try settle(result, expecting: code, .init(places: [(place.id, place)]), durability)
  }

  func saveMany() async throws {
    let durability = anyDurability
    let written = (0..<random.int(1..<6)).map { _ in anyPlace }
    let result = try await attempt { try await places.save(contentsOf: written, durability: durability) }
    let code: RepositoryError.Code? = model.clashes(written) ? .uniqueViolation : nil
    try settle(result, expecting: code, .init(places: written.map { ($0.id, $0) }), durability)
  }

  func insert() async throws {
    let (place, durability) = (anyPlace, anyDurability)
    let result = try await attempt { try await places.insert(place, durability: durability) }
    let code: RepositoryError.Code? =
      model.places[place.id] != nil ? .alreadyExists : model.clashes([place]) ? .uniqueViolation : nil
    try settle(result, expecting: code, .init(places: [(place.id, place)]), durability)
  }

  func update() async throws {
    let (id, value, durability) = (anyID, random.int(0..<100), anyDurability)
    let result = try await attempt { try await places.update(id, durability: durability) { $0.value = value } }
    var place = model.places[id]
    place?.value = value
    try expect(result.code != nil || result.value == place, "update returned \(String(describing: result.value))")
    try settle((nil, result.code), expecting: place == nil ? .notFound : nil, .init(places: [(id, place)]), durability)
  }

  func delete() async throws {
    let (id, durability) = (anyID, anyDurability)
    let wasThere: Bool
    deletions += 1
    if mistake == .losesDeletions, deletions.isMultiple(of: 3) {
      wasThere = model.places[id] != nil
    } else {
      wasThere = try await places.delete(id, ifRevision: nil, durability: durability)
    }
    try expect(wasThere == (model.places[id] != nil), "delete returned \(wasThere)")
    if wasThere { model.commit(.init(places: [(id, nil)]), isDurable: durability == .durable || mistake == .calledDurable) }
  }

  func deleteMany() async throws {
    let limit = random.int(0..<12)
    let count = try await places.delete(where: Query<Place>().where(\.value, .less, limit))
    let gone = model.places.values.filter { $0.value < limit }
    try expect(count == gone.count, "\(count) places were deleted, not \(gone.count)")
    if count > 0 { model.commit(.init(places: gone.map { ($0.id, nil) }), isDurable: mistake == .calledDurable) }
  }

  func replaceAll() async throws {
    let kept = Place.ids.filter { _ in random.chance(60) }.map { Place.random($0, using: &random) }
    let result = try await attempt { try await places.replaceAll(with: kept) }
    let code: RepositoryError.Code? = model.clashes(kept, replacing: true) ? .uniqueViolation : nil
    try expect(result.code == code, "replaceAll ended with \(Self.text(result.code)), not \(Self.text(code))")
    let ids = Set(kept.map(\.id))
    let gone = model.places.keys.filter { !ids.contains($0) }
    if code != nil || (gone.isEmpty && kept.isEmpty) { return }
    model.commit(.init(places: gone.map { ($0, nil) } + kept.map { ($0.id, $0) }), isDurable: mistake == .calledDurable)
  }

  func compareAndSet() async throws {
    let (place, durability) = (anyPlace, anyDurability)
    let revision = model.revisions[place.id]
    let (expected, isRight): (Revision, Bool) =
      switch random.int(0..<4) {
      case 0: (Revision(model.revision + 1), false)
      case 1: (.zero, revision == nil)
      default: (Revision(revision ?? 0), true)
      }
    let result = try await attempt { try await places.save(place, ifRevision: expected, durability: durability) }
    let code: RepositoryError.Code? = !isRight ? .revisionMismatch : model.clashes([place]) ? .uniqueViolation : nil
    try settle(result, expecting: code, .init(places: [(place.id, place)]), durability)
  }

  func saveNote() async throws {
    let note = Note(id: random.int(Note.ids), amount: random.int(0..<1_000))
    let durability = anyDurability
    let result = try await attempt { try await opened.notes.save(note, ifRevision: nil, durability: durability) }
    try settle(result, expecting: nil, .init(notes: [(note.id, note)]), durability)
  }

  func deleteNote() async throws {
    let id = random.int(Note.ids)
    let wasThere = try await opened.notes.delete(id)
    try expect(wasThere == (model.notes[id] != nil), "delete of a note returned \(wasThere)")
    if wasThere { model.commit(.init(notes: [(id, nil)]), isDurable: mistake == .calledDurable) }
  }
}
