internal import Larder
internal import TestSupport

extension World {
  private struct Stop: Error {}

  /// Reads and writes both repositories in one transaction, which throws in the end now and then.
  func transaction() async throws {
    let place = Place.random(anyID, using: &random)
    let note = Note(id: random.int(Note.ids), amount: random.int(0..<1_000))
    let (fails, deletesNote) = (random.chance(30), random.chance(30))
    let (places, notes, hidesThrow) = (opened.places, opened.notes, mistake == .keepsThrownTransactions)
    let result: (value: Int?, code: RepositoryError.Code?)
    do {
      result = try await attempt {
        try await opened.store.transaction(durability: .buffered) { transaction in
          try transaction.save(place, in: places)
          if deletesNote { try transaction.delete(note.id, in: notes) } else { try transaction.save(note, in: notes) }
          guard try transaction.find(by: place.id, in: places) == place,
            try transaction.find(by: note.id, in: notes) == (deletesNote ? nil : note)
          else {
            throw Difference("a transaction does not see its own writes")
          }
          let count = try transaction.count(in: places)
          if fails, !hidesThrow { throw Stop() }
          return count
        }
      }
    } catch is Stop {
      return try expect(fails, "a transaction threw by itself")
    }
    if fails { return try expect(hidesThrow, "a transaction that throws ended with \(Self.text(result.code))") }
    let code: RepositoryError.Code? = model.clashes([place]) ? .uniqueViolation : nil
    try expect(result.code == code, "the transaction ended with \(Self.text(result.code)), not \(Self.text(code))")
    if code != nil { return }
    model.commit(.init(places: [(place.id, place)], notes: [(note.id, deletesNote ? nil : note)]), isDurable: mistake == .calledDurable)
    try expect(result.value == model.places.count, "the transaction counted \(result.value ?? -1) places, not \(model.places.count)")
  }
}
