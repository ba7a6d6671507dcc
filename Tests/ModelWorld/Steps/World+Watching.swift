internal import Larder
internal import TestSupport

/// The readers of changes and of a live query.
extension World {
  /// Saves a place, since the changes before may have cancelled each other out, and reads until that is told.
  func readChanges() async throws {
    let place = try await saveForReaders()
    var (told, iterator) = (watcher, watcher.changes)
    while told.told[place.id] != place || iterator.revision.number < model.revision {
      guard let set = try await iterator.next() else { throw Difference("the changes ended while the store was open") }
      try told.apply(set, mistake: mistake)
      if set.revision.number >= model.revision { break }
    }
    told.changes = iterator
    watcher = told
    try watcher.compare(model.places)
  }

  /// Saves a place whose slug and value no other has at this moment.
  private func saveForReaders() async throws -> Place {
    var place = Place.random(anyID, using: &random)
    place.slug = "r\(model.revision)"
    let revision = try await places.save(place)
    model.commit(.init(places: [(place.id, place)]), isDurable: mistake == .calledDurable)
    // Or the readers would wait for a commit that never comes.
    try expect(revision.number == model.revision, "the write is commit \(revision), not \(model.revision)")
    return place
  }

  func readResults() async throws {
    let wanted = Watcher.expected(in: model.places)
    // Or the reader would wait for what never comes.
    let fetched = try await places.fetch(Watcher.query)
    try expect(fetched == wanted, "the followed query gives \(fetched.map(\.id)), not \(wanted.map(\.id))")
    var (shown, iterator) = (watcher.shown, watcher.results)
    var count = 0
    while shown != wanted {
      // What is told is the newest or, where the observers are told a moment later, one before it.
      guard let next = try await iterator.next() else { throw Difference("the live query ended while the store was open") }
      count += 1
      try expect(count <= 1_000, "the live query never shows \(wanted.map(\.id))")
      shown = next
    }
    (watcher.shown, watcher.results) = (shown, iterator)
  }

  /// Reads the changes since a commit of the log, beginning with the state that it left.
  func resume() async throws {
    var since = model.oldest + UInt64(random.int(0..<Int(model.revision - model.oldest) + 1))
    var state = model.state(at: since)?.places
    if random.chance(50), let bookmark { (since, state) = (bookmark.revision, bookmark.places) }
    // A place that is there and was written since is told in the first set, with everything else.
    guard let state, model.revisions.values.contains(where: { $0 > since }) else { return }
    try compareContents("before changes are resumed,")
    var reader = watcher
    reader.told = state
    var iterator = places.changes(since: Revision(since)).makeAsyncIterator()
    guard let set = try await iterator.next() else { throw Difference("the resumed changes ended while the store was open") }
    for change in set.changes {
      guard let id = change.id else { throw Difference("a resumed change has no id: \(change.kind)") }
      reader.told[id] = change.new
    }
    try reader.compare(model.places)
  }

  /// Closes the store; what it has not told its readers comes before the end.
  func closeStore() async throws {
    try await opened.store.close()
    var (told, iterator) = (watcher, watcher.changes)
    while let set = try await iterator.next() { try told.apply(set, mistake: mistake) }
    try told.compare(model.places)
    var (shown, results) = (watcher.shown, watcher.results)
    if shown != nil {
      while let next = try await results.next() { shown = next }
      try expect(shown == Watcher.expected(in: model.places), "the live query ended with \(String(describing: shown?.map(\.id)))")
    }
  }
}
