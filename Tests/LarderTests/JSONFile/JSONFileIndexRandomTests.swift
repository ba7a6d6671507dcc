import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder

/// Random histories of a JSON store with indexes in the index file: commits, checkpoints, crashes, damage and failed writes.
@Suite("JSON: random histories of indexes", .timeLimit(.minutes(Torture.isOn ? 60 : 5))) struct JSONFileIndexRandomTests {
  struct Spot: Codable, Identifiable, Hashable, Sendable {
    let id: Int
    var city: String
    var rating: Int
    var code: Int
  }

  @Test func theAnswersAreThoseOfTheModel() async throws {
    let seeds = Seeds.list(Torture.count(6, full: 1_000), for: "JSON: theAnswersAreThoseOfTheModel")
    var (kept, caughtUp, refused) = (0, 0, 0)
    for seed in seeds {
      var history = try await History(seed)
      let problem = await history.run(70)
      #expect(problem == nil, "LARDER_SEED=\(seed), steps \(history.log)")
      (kept, caughtUp, refused) = (kept + history.kept, caughtUp + history.caughtUp, refused + history.refused)
    }
    print("figures: an index was used after \(kept) kills, and lacked changes after \(caughtUp) of them; \(refused) writes were refused")
    #expect(seeds.count == 1 || kept > 0 && caughtUp > 0 && refused > 0)
  }
}

/// A store on a simulated disk, and the records that it must have.
private struct History {
  typealias Spot = JSONFileIndexRandomTests.Spot
  struct Problem: Error { let text: String }
  private static let schema = RepositorySchema<Spot>(
    "spots", indexes: [.ordered(\.city, .descending(\.rating)), .ordered(\.rating), .unique(\.code)])
  private static let cities = ["", "a", "Åsgård", "Zürich", "zebra", "東京", "😀 bay", "ß", "éa", "Ελλάδα"]
  private var random: SeededGenerator
  private let tuning: JSONFileBackend.Tuning
  private let checkpoint: StoreOptions.Checkpoint
  private var files = SimulatedFileSystem()
  private var faults: FaultyIndexFiles
  private var spots: LocalRepository<Spot>
  private var model: [Int: Spot] = [:]
  /// The records after each commit that a crash may leave as the newest one.
  private var states: [UInt64: [Int: Spot]] = [0: [:]]
  /// Snapshots with the records that they must have.
  private var held: [(snapshot: RepositorySnapshot<Spot>, model: [Int: Spot])] = []
  private var oldIndexFiles: [Data] = []
  /// Identity of an index file that lacks parts, and whether the store was opened with such a file.
  private var (damaged, mayReportDamage): (FileIdentity?, Bool) = (nil, false)
  /// The next part of a checkpoint beside commits.
  private var part: (@Sendable () -> Void)?
  private(set) var log = ""
  /// Number of kills after which an index was used, and of those after which it lacked changes.
  private(set) var (kept, caughtUp) = (0, 0)
  /// Number of writes that were refused because of a code.
  private(set) var refused = 0

  init(_ seed: UInt64) async throws {
    random = SeededGenerator(seed)
    tuning = .init(smallFile: random.chance(50) ? 0 : 1 << 20, pagedJournal: 20_000)
    checkpoint = random.chance(80) ? .manual : .init(idle: nil, bySize: true)
    faults = FaultyIndexFiles(files)
    spots = try await Self.open(Self.backend(faults, tuning), checkpoint)
  }

  private static func backend(_ files: any FileSystem, _ tuning: JSONFileBackend.Tuning) -> JSONFileBackend {
    JSONFileBackend(file: PagedJSONStore.file, fileSystem: files, tuning: tuning)
  }

  private static func open(
    _ backend: JSONFileBackend, _ checkpoint: StoreOptions.Checkpoint, _ residency: Residency = .onDisk(cache: .bytes(10_000))
  ) async throws -> LocalRepository<Spot> {
    try await LocalRepository(
      backend: backend, schema: schema, options: StoreOptions(durability: .buffered, checkpoint: checkpoint, residency: residency))
  }

  /// Runs steps, and returns the first problem.
  mutating func run(_ count: Int) async -> (any Error)? {
    do {
      for number in 0..<count {
        failSoon(percent: 15)
        try await step(random.int(0..<39))
        faults.fail(at: 0..<0)
        if number.isMultiple(of: 6) { try await check() }
      }
      try await spots.close()
      return nil
    } catch {
      await spots.core.abandon()
      return error
    }
  }

  private mutating func failSoon(percent: Int) {
    let first = random.int(1..<9)
    if random.chance(percent) { faults.fail(at: first..<(random.chance(50) ? .max : first + 1)) }
  }

  private func expect(_ condition: Bool, _ text: @autoclosure () -> String) throws { if !condition { throw Problem(text: text()) } }

  private mutating func step(_ kind: Int) async throws {
    log += " \(kind)"
    switch kind {
    case 0..<14: try await write(kind)
    case 14..<21:
      try await query()
      if random.chance(80) { await spots.core.indexBuilder.stored.awaitCopies() }
    case 21, 22:
      repeat { try await fold() } while kind == 21 && part != nil
      try await kind == 21 ? spots.checkpoint() : spots.flush()
      settle()
    case 23..<28: try await fold()
    case 28: held = held.suffix(4) + [(spots.snapshot, model)]
    case 29: if let index = files.contents(of: PagedJSONStore.index), try !isDamaged() { oldIndexFiles.append(index) }
    case 30: try await suspend()
    case 31, 32:
      try await close()
      if kind == 31 { return try await tamper() }
      // A store with its records in memory does not change the index file.
      try await open(.full)
      for kind in [0, 5, 8, 21].prefix(random.int(0..<5)) { try await step(kind) }
      if random.chance(50) { try await close() } else { await leave(for: files.copy()) }
      try await open()
    case 33, 34: try await kill()
    default: try await crash(kind < 37 ? .processKill : .powerLoss)
    }
  }

  /// - Parameter percent: Chance that the spot has the code of another spot, or the code that another one would get.
  private mutating func makeSpot(strange percent: Double = 0.1) -> Spot {
    let (id, isStrange) = (random.int(0..<900), Double(random.int(0..<1_000)) < 10 * percent)
    return Spot(
      id: id, city: Self.cities[random.int(0..<Self.cities.count)], rating: random.int(-40..<40),
      code: isStrange ? random.int(0..<900) : id)
  }

  /// True if no two spots have one code.
  private static func isUnique(_ model: [Int: Spot]) -> Bool { Set(model.values.map(\.code)).count == model.count }

  private mutating func write(_ kind: Int) async throws {
    let (durability, spots): (Durability, _) = (random.chance(30) ? .durable : .buffered, spots)
    let (one, ids) = (makeSpot(strange: 40), (0..<3).map { _ in random.int(0..<900) })
    let many = (0..<random.int(1..<(kind == 7 ? 300 : 30))).map { _ in makeSpot() }
    var next = kind == 12 ? [:] : model
    switch kind {
    case 0..<7: next[one.id] = kind < 5 ? one : nil
    case 11: next = next.filter { $0.value.rating != one.rating }
    default:
      if kind == 13 { for id in ids { next[id] = nil } }
      for spot in many { next[spot.id] = spot }
    }
    let (before, isUnique) = (spots.core.state.commit, Self.isUnique(next))
    if isUnique { states[before + 1] = next }  // A crash during the commit may leave it.
    do {
      switch kind {
      case 0..<5: try await spots.save(one, durability: durability)
      case 5, 6: try await spots.delete(one.id, durability: durability)
      case 7..<11: try await spots.save(contentsOf: many, durability: durability)
      case 11: _ = try await spots.delete(where: Query().where(\.rating, .equal, one.rating))
      case 12: try await spots.replaceAll(with: Array(next.values))
      default:
        try await spots.transaction(durability: durability) { transaction in
          for id in ids { try transaction.delete(id, in: spots) }
          for spot in many { try transaction.save(spot, in: spots) }
        }
      }
    } catch RepositoryError.Code.uniqueViolation {
      refused += 1
      return try expect(!isUnique, "a write was refused that leaves no duplicates")
    }
    try expect(isUnique, "a write has left duplicates")
    model = next
    if durability == .durable, kind != 11, kind != 12, spots.core.state.commit > before { settle() }
  }

  /// Notes that no power cut loses a commit so far.
  private mutating func settle() { states = [spots.core.state.commit: model] }

  /// Runs a part of a checkpoint beside commits, unless the store makes such checkpoints itself.
  private mutating func fold() async throws {
    if checkpoint != .manual { return }
    let (core, work) = (spots.core, part)
    part = nil
    work?()
    part = try await core.executor.run { () throws(RepositoryError) in
      let next = work == nil ? try core.backend.beginCheckpoint() : try core.backend.continueCheckpoint()
      if next == nil { core.moveBaseIfWorthwhile() }
      return next
    }
  }

  private mutating func close() async throws {
    part = nil
    try await spots.close()
    settle()
  }

  /// Suspends the store, and in one of two cases commits in another store of the same files.
  private mutating func suspend() async throws {
    part = nil
    await spots.suspend()
    if random.chance(50) {
      let other = try await Self.open(Self.backend(files, tuning), .manual, random.chance(50) ? .full : .onDisk(cache: .bytes(0)))
      let spot = makeSpot()
      if Self.isUnique(model.merging([spot.id: spot]) { $1 }) {
        model[spot.id] = spot
        try await other.save(spot)
      }
      if random.chance(30) { try await other.checkpoint() }
      try await other.close()
    }
    try await spots.resume()
    settle()
  }

  /// Damages, replaces or removes the index file of the closed store in most cases, and opens the store again.
  private mutating func tamper() async throws {
    let (path, kind) = (PagedJSONStore.index, random.int(0..<8))
    if var index = files.contents(of: path), !index.isEmpty, kind < 6 {
      held = []
      var isTorn = try kind < 2 || isDamaged()
      switch kind {
      case 0: index[random.int(0..<index.count)] ^= UInt8(random.int(1..<256))
      case 1: index = index.prefix(random.int(0..<index.count))
      default: if let old = oldIndexFiles.randomElement(using: &random) { (index, isTorn) = (old, false) }
      }
      if kind == 2 { try files.remove(path) } else { try files.place(index, at: path) }
      damaged = isTorn ? try files.status(of: path)?.identity : nil
    }
    try await open()
  }

  private func isDamaged() throws -> Bool { try damaged != nil && files.status(of: PagedJSONStore.index)?.identity == damaged }

  /// Ends the process between two steps, and requires that the store uses the indexes that the files have.
  private mutating func kill() async throws {
    let ids = spots.core.state.collections[spots.collection].indexes.storedIDs(of: Self.schema.name)
    await leave(for: files.copy())
    let probe = Self.backend(files.copy(), tuning)
    _ = try probe.openPagedAndRecover(PagedJSONStore.options)
    let usable = try ids.map { (isWhole: probe.holdsIndex($0.id), missed: try probe.missedChanges(of: $0.id).count) }
    probe.abandon()
    try await open(usable: isDamaged() ? [] : usable)
  }

  /// Ends the process or the power, perhaps within a step.
  private mutating func crash(_ kind: CrashKind) async throws {
    if random.chance(70) {
      files.crash(beforeOperation: files.operationCount + random.int(1..<30))
      do { for _ in 0..<6 where !files.isDown { try await step(random.int(0..<28)) } } catch is RepositoryError {}
    }
    // A kill loses no commit that was acknowledged.
    if kind == .processKill { states = states.filter { $0.key >= spots.core.state.commit } }
    let images = files.crashImages(kind, limit: 30, seed: random.next())
    await leave(for: images[random.int(0..<images.count)].fileSystem)
    // The writes of an index file are not ordered, so a power cut may lose parts that a slot names.
    if kind == .powerLoss { damaged = try files.status(of: PagedJSONStore.index)?.identity }
    try await open(isNewest: false)
  }

  private mutating func leave(for next: SimulatedFileSystem) async {
    (part, held) = (nil, [])
    await spots.core.abandon()
    files = next
  }

  private mutating func open(
    _ residency: Residency = .onDisk(cache: .bytes(10_000)), isNewest: Bool = true, usable: [(isWhole: Bool, missed: Int)] = []
  ) async throws {
    (faults, mayReportDamage) = (FaultyIndexFiles(files), try isDamaged())
    if usable.isEmpty { failSoon(percent: 20) }
    spots = try await Self.open(Self.backend(faults, tuning), checkpoint, residency)
    // An opening that builds a unique index builds the others in the same pass.
    let builds = usable.enumerated().contains { Self.schema.indexes[$0.offset].isUnique && !$0.element.isWhole && $0.element.missed == 0 }
    for (position, index) in usable.enumerated() {
      let (isUsable, isStored) = (index.isWhole || index.missed > 0, spots.isStored(position))
      let isAllowed = isStored == isUsable || !isUsable && builds
      try expect(isAllowed, "index \(position): \(index)")
      if isStored && isUsable { (kept, caughtUp) = (kept + 1, caughtUp + (index.missed > 0 ? 1 : 0)) }
    }
    guard let state = states[spots.core.state.commit], !isNewest || state == model else { throw Problem(text: "another commit") }
    model = state
    settle()
    let all = try await spots.loadAll()
    try expect(Set(all) == Set(model.values) && all.count == model.count, "other records after opening")
    if case .onDisk = residency { try await check() }
  }

  private mutating func query() async throws {
    let (city, lower) = (makeSpot().city, random.int(-45..<45))
    let found = try await spots.fetch(Query<Spot>().where(\.city, .equal, city).sorted(by: \.rating, .reverse).limit(7))
    let expected = model.values.filter { $0.city == city }.map(\.rating).sorted(by: >).prefix(7)
    try expect(found.map(\.rating) == Array(expected) && found.allSatisfy { model[$0.id] == $0 }, "\(city): \(found)")
    let count = try await spots.count(Query<Spot>().where(\.rating, .greaterOrEqual, lower).where(\.rating, .less, lower + 20))
    try expect(count == model.values.count { (lower..<(lower + 20)).contains($0.rating) }, "\(count) from \(lower)")
  }

  private mutating func check() async throws {
    try await query()
    await spots.core.executor.run { [core = spots.core] in core.moveBaseIfWorthwhile() }
    do {
      let wrong = try await spots.wrongStoredIndex()
      try expect(wrong == nil, "other keys in \(wrong ?? "")")
    } catch let error as RepositoryError {
      // During an automatic checkpoint, the store may read an index from the old index file that the new one lacks.
      let isAllowed = try error.code == .unsupported ? checkpoint != .manual : error.code == .corrupted && isDamaged()
      try expect(isAllowed, "stored index: \(error)")
    }
    let report = await spots.core.verify()
    try expect(isDamaged() || report.isSound && (mayReportDamage || report.damagedIndexes.isEmpty), "\(report)")
    let city = makeSpot().city
    for (snapshot, model) in held {
      do {
        let found = try snapshot.fetch(Query().where(\.city, .equal, city))
        try expect(Set(found) == Set(model.values.filter { $0.city == city }), "\(city) in a snapshot")
      } catch let error as RepositoryError {
        try expect(error.code == .superseded, "\(error)")
      }
    }
  }
}
