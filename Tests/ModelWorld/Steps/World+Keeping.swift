internal import Foundation
internal import Larder
internal import LarderSQLite
internal import LarderTesting
internal import TestSupport

/// The steps that keep a store: sync, checkpoint, check, copy; and others who want it.
extension World {
  func flush() async throws {
    try await opened.store.flush()
    model.durable = model.revision
  }

  func checkpoint() async throws {
    try await opened.store.checkpoint()
    model.durable = model.revision
    try compareContents("after a checkpoint")
  }

  func verify() async throws {
    let report = await opened.store.verify()
    try expect(report.isSound, "verify finds \(report.problems)")
    let count = model.places.count + model.notes.count
    try expect(report.recordCount == count, "verify counts \(report.recordCount) records, not \(count)")
    try expect(report.commit.number == model.revision, "verify finds commit \(report.commit), not \(model.revision)")
  }

  /// Copies the store, and opens the copy.
  func backup() async throws {
    var copy = site
    let url: URL
    let backend: any StorageBackend
    switch site.backing {
    case .memory:
      let target = InMemoryBackend()
      let report = try await opened.store.copy(to: target)
      try expect(report.isSound, "a copy has problems: \(report.problems)")
      return try await compareCopy(target)
    case .json:
      url = URL(filePath: "/store/copy.json")
      backend = JSONFileBackend(file: url, fileSystem: site.files)
    case .sqlite, .shared:
      let directory = try TemporaryDirectory(inMemory: true)
      copy.directory = directory
      url = directory.file("places.sqlite")
      backend = copy.backend()
    }
    try await opened.store.backup(to: url)
    try await compareCopy(backend)
    for path in site.files.paths where path.hasPrefix("/store/copy") { try site.files.remove(path) }
    // Or a crash may bring it back.
    if site.backing == .json { try site.files.syncDirectory("/store") }
  }

  private func compareCopy(_ backend: any StorageBackend) async throws {
    let copy = try await site.open(version: model.version, options, of: backend)
    try Self.compare(try copy.contents, model.state, "in a copy")
    try await copy.store.close()
  }

  /// Opens the store a second time: it is refused, or another process writes beside this one.
  func openAgain() async throws {
    if site.backing == .shared, random.chance(70) { return try await writeFromElsewhere() }
    var others = options
    others.access = .exclusive
    let result = try await attempt { try await site.open(version: model.version, others) }
    let isRefused = result.code == .locked || result.code == .alreadyOpen
    try expect(isRefused, "a second opening ended with \(Self.text(result.code))")
    try compareContents("after a second opening")
  }

  private func writeFromElsewhere() async throws {
    let other = try await site.open(version: model.version, options)
    try Self.compare(try other.contents, model.state, "in another process")
    for _ in 0..<random.int(1..<4) {
      var place = Place.random(random.int(Place.ids), using: &random)
      place.slug = "e\(model.revision)"
      let revision = try await other.places.save(place, ifRevision: nil, durability: .buffered)
      model.commit(.init(places: [(place.id, place)]), isDurable: mistake == .calledDurable)
      try expect(revision.number == model.revision, "a write of another process is commit \(revision), not \(model.revision)")
    }
    try await other.store.close()
    try await opened.store.refresh()
    try compareContents("after writes of another process")
  }
}
