import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder

/// One run of a program over a repository on a disk that fails one call: what is in memory is what is on the disk, before and after.
final class EngineFaultTrial {
  struct OldPlace: Codable, Identifiable, Sendable {
    var id: String
    var name: String
  }

  struct Place: Codable, Identifiable, Hashable, Sendable {
    var id: String
    var name: String
    var rank: Int
  }

  typealias Contents = [String: Place]

  private static let file = URL(fileURLWithPath: "/data/app/places.json")
  private static let schema = RepositorySchema<Place>(
    "places", version: 2, indexes: [.unique(\.rank)],
    migrations: [.init(from: 1, OldPlace.self, to: Place.self) { Place(id: $0.id, name: $0.name, rank: $0.name.count) }])

  /// A program's calls, in order.
  private enum Step: CaseIterable {
    case save, transaction, migrate, delete, checkpoint, replaceAll, saveBuffered, flush, reopen, saveLast, close
  }

  private let files: SimulatedFileSystem
  let faulty: FaultyFileSystem
  private let fault: Fault?
  private var places: LocalRepository<Place>?
  private var feed: RepositoryChanges<Place>?
  /// The records that the feed's reader knows: at first those that were there when the feed was made.
  private var seen: Contents = [:]
  /// The acknowledged contents; and those with a change whose outcome is unknown.
  private var state: Contents = [:]
  private var doubtful: Contents?
  private(set) var comparisons = 0

  init(_ start: SimulatedFileSystem, _ point: FaultPoint?, _ fault: Fault?) {
    files = start.copy()
    faulty = FaultyFileSystem(files)
    self.fault = fault
    if let point, let fault { faulty.fail(point, fault) }
  }

  /// Makes the files of a closed store of the older schema.
  static func start() async throws -> SimulatedFileSystem {
    let files = SimulatedFileSystem()
    let old = try await LocalRepository<OldPlace>(
      backend: JSONFileBackend(file: file, fileSystem: files), schema: RepositorySchema("places"))
    try await old.replaceAll(with: (1...6).map { OldPlace(id: "\($0)", name: String(repeating: "x", count: $0)) })
    try await old.close()
    return files
  }

  /// Runs the program, goes on after the fault, and loses power.
  func run() async throws {
    for number in 1...6 { state["\(number)"] = Place(id: "\(number)", name: String(repeating: "x", count: number), rank: number) }
    for step in Step.allCases {
      do {
        try await apply(step)
      } catch let error as RepositoryError {
        try check(error, step)
        try await compare("after \(step) has failed")
        if [.outcomeUnknown, .poisoned].contains(error.code) { try await end() }
        if fault?.isPermanent != true { try await apply(step) }
      }
    }
    faulty.mend()
    try await end()
    try await opened().save(Place(id: "end", name: "end", rank: 1_000))
    state["end"] = Place(id: "end", name: "end", rank: 1_000)
    try await compare("in the end")
    #expect(try await Self.contents(files.crashImages(limit: 1)[0].fileSystem) == state, "after a power cut")
    try await end()
    #expect(try await Self.contents(files.copy()) == state, "closed")
  }

  private func check(_ error: RepositoryError, _ step: Step) throws {
    try #require(faulty.hits > 0, "\(step) failed without a fault: \(error)")
    if [.outcomeUnknown, .poisoned].contains(error.code) || error.code == fault?.code { return }
    if fault?.effect == .shortRead, [.corrupted, .dataMissing, .inputOutput].contains(error.code) { return }
    Issue.record("\(step): expected the code of the fault, found \(error)")
  }

  // MARK: Steps

  private func apply(_ step: Step) async throws {
    var next = state
    switch step {
    case .save:
      next["7"] = Place(id: "7", name: "seven", rank: 7)
      try await change(next) { try await $0.save(Place(id: "7", name: "seven", rank: 7)) }
    case .transaction:
      next["8"] = Place(id: "8", name: "eight", rank: 1)
      next["1"] = nil
      try await change(next) { places in
        try await places.transaction { transaction in
          try transaction.delete("1", in: places)
          try transaction.save(Place(id: "8", name: "eight", rank: 1), in: places)
        }
      }
    case .migrate: try await change(next) { try await $0.finishMigration() }
    case .delete:
      next["2"] = nil
      try await change(next) { _ = try await $0.delete("2") }
    case .checkpoint: try await change(next) { try await $0.checkpoint() }
    case .replaceAll:
      next = next.filter { $0.key != "3" }
      next["9"] = Place(id: "9", name: "nine", rank: 9)
      let items = Array(next.values)
      try await change(next) { try await $0.replaceAll(with: items) }
    case .saveBuffered:
      next["7"] = Place(id: "7", name: "seven again", rank: 7)
      try await change(next) { try await $0.save(Place(id: "7", name: "seven again", rank: 7), durability: .buffered) }
    case .flush: try await change(next) { try await $0.flush() }
    case .reopen:
      try await end()
      _ = try await opened()
    case .saveLast:
      next["10"] = Place(id: "10", name: "ten", rank: 10)
      try await change(next) { try await $0.save(Place(id: "10", name: "ten", rank: 10)) }
    case .close: try await end()
    }
  }

  private func change(_ next: Contents, _ body: (LocalRepository<Place>) async throws -> Void) async throws {
    let places = try await opened()
    do {
      try await body(places)
    } catch {
      if (error as? RepositoryError)?.code == .outcomeUnknown { doubtful = next }
      throw error
    }
    state = next
  }

  private func opened() async throws -> LocalRepository<Place> {
    if let places { return places }
    let new = try await Self.open(faulty)
    (places, feed) = (new, new.changes())
    seen = try await Self.contents(of: new)
    if let doubtful, seen == doubtful { state = seen }
    doubtful = nil
    #expect(seen == state, "opening")
    return new
  }

  /// Ends the store, and compares what its observer was told with what was in memory.
  private func end() async throws {
    guard let places, let feed else { return }
    (self.places, self.feed) = (nil, nil)
    let last = Dictionary(uniqueKeysWithValues: places.snapshot.loadAll().map { ($0.id, $0) })
    var failure: RepositoryError?
    do throws(RepositoryError) { try await places.close() } catch { failure = error }
    for try await set in feed {
      for change in set.changes { seen[change.id ?? ""] = change.new }
    }
    #expect(seen == last, "the observer knows something else than was in memory")
    // What the end of a store that is given up could not do is done by the next opening.
    if let failure { try check(failure, .close) }
  }

  // MARK: Checks

  /// Compares what the open store answers with what was acknowledged, and with what a fresh opening of the files reads.
  private func compare(_ what: String) async throws {
    comparisons += 1
    if let places {
      #expect(try await Self.contents(of: places) == state, "\(what): memory")
      for id in ["1", "7", "8", "10"] { #expect(try await places.find(by: id) == state[id], "\(what): find") }
      let ranks = try await places.fetch(Query().sorted(by: \.rank)).map(\.rank)
      #expect(ranks == state.values.map(\.rank).sorted(), "\(what): an index")
    }
    let disk = try await Self.contents(files.copy())
    #expect(disk == state || disk == doubtful, "\(what): the disk has \(disk.keys.sorted()), not \(state.keys.sorted())")
  }

  private static func open(_ files: any FileSystem) async throws -> LocalRepository<Place> {
    try await LocalRepository(
      backend: JSONFileBackend(file: file, fileSystem: files), schema: schema,
      options: StoreOptions(checkpoint: .manual, migration: .init(mode: .manual, batchSize: 4)))
  }

  private static func contents(of places: LocalRepository<Place>) async throws -> Contents {
    Dictionary(uniqueKeysWithValues: try await places.loadAll().map { ($0.id, $0) })
  }

  private static func contents(_ files: SimulatedFileSystem) async throws -> Contents {
    let places = try await open(files)
    let contents = try await contents(of: places)
    await places.abandon()
    return contents
  }
}
