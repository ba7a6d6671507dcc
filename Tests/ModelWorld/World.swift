// Tests/ModelWorld holds one world for model runs: a store of two repositories, a cache, blobs, and their surroundings, beside a model.
// Invariant: after each step the world holds what the model holds, or the step throws a `Difference`. Called by ModelTests.

internal import Foundation
internal import Larder
internal import LarderBlobs
internal import LarderTesting
internal import TestSupport

/// A store, a cache and blobs, with a model of each, and a seed that says what happens to them.
package final class World {
  let seed: UInt64
  let mistake: Mistake?
  let options: StoreOptions
  var random: SeededGenerator
  var site: Site
  var model = Model()
  var opened: OpenStore
  var watcher: Watcher
  var snapshots: [KeptSnapshot] = []
  /// A commit with its places, of this opening of the store or an earlier one.
  var bookmark: (revision: UInt64, places: [Int: Place])?

  let clock = ManualClock()
  let source = FakeSource()
  var cacheModel = CacheModel()
  var cache: CachedRepository<Int, Int>

  var blobModel: [String: Data] = [:]
  var blobs: BlobStore

  var deletions = 0
  private let table: [Step]

  /// Makes an empty world.
  ///
  /// - Parameters:
  ///   - isEventful: Whether crashes, migrations and the like come twenty times as often.
  ///   - mistake: What is done wrong on purpose.
  package init(_ backing: Backing, seed: UInt64, isEventful: Bool = false, mistake: Mistake? = nil) async throws {
    self.seed = seed
    self.mistake = mistake
    random = SeededGenerator(seed)
    table = isEventful ? Step.eventful : Step.table
    site = try Site(backing)
    options = StoreOptions(
      access: backing == .shared ? .shared : .exclusive, durability: .buffered,
      checkpoint: .init(idle: nil, bySize: true), indexing: random.chance(50) ? .eager : .onFirstNeed, pollInterval: nil)
    opened = try await site.open(version: 1, options)
    watcher = Watcher(opened, told: [:])
    cache = try await site.openCache(clock, source)
    blobs = try await site.openBlobs()
  }

  /// Does some steps, and closes everything.
  ///
  /// - Returns: The number of steps.
  /// - Throws: ``Difference`` with the step's number and the seed.
  @discardableResult
  package func run(_ count: Int) async throws -> Int {
    var number = 0
    var step = Step.compareAll
    do {
      while number < count {
        number += 1
        step = table[random.int(0..<table.count)]
        try await perform(step)
      }
      step = .compareAll
      try await perform(step)
      try await closeAll()
    } catch {
      // The planted mistakes must be found by a comparison, and by nothing else.
      guard error is Difference || mistake == nil else { throw error }
      throw Difference("\(site.backing), step \(number) (\(step)): \(error); replay with LARDER_SEED=\(seed)")
    }
    return number
  }

  private func closeAll() async throws {
    try await closeStore()
    try await cache.close()
    try await blobs.close()
  }

  private func perform(_ step: Step) async throws {
    switch step {
    case .find: try await find()
    case .count: try await count()
    case .snapshotRead: try readSnapshot()
    case .revision: try readRevision()
    case .query: try await query()
    case .pages: try await pages()
    case .save: try await save()
    case .saveMany: try await saveMany()
    case .insert: try await insert()
    case .update: try await update()
    case .delete: try await delete()
    case .deleteMany: try await deleteMany()
    case .replaceAll: try await replaceAll()
    case .compareAndSet: try await compareAndSet()
    case .saveNote: try await saveNote()
    case .deleteNote: try await deleteNote()
    case .findNote: try await findNote()
    case .transaction: try await transaction()
    case .changes: try await readChanges()
    case .results: try await readResults()
    case .resume: try await resume()
    case .keepSnapshot: keepSnapshot()
    case .compareSnapshots: try compareSnapshots()
    case .compareAll: try await compareAll()
    default: try await performElsewhere(step)
    }
  }

  /// Does a step that is about the cache, the blobs, or the surroundings of the store.
  private func performElsewhere(_ step: Step) async throws {
    switch step {
    case .cached: try await readCached()
    case .invalidate: try await invalidate()
    case .emptyCache: try await emptyCache()
    case .remoteChange: changeRemote()
    case .passTime: passTime()
    case .setClock: setClock()
    case .reopenCache: try await reopenCache()
    case .putBlob: try await putBlob()
    case .getBlob: try await getBlob()
    case .blobInfo: try readBlobInfo()
    case .removeBlob: try await removeBlob()
    case .reopenBlobs: try await reopenBlobs()
    case .flush: try await flush()
    case .checkpoint: try await checkpoint()
    case .verify: try await verify()
    case .backup: try await backup()
    case .reopen: try await reopen()
    case .migrate: try await migrate()
    case .killedMigration: try await killMigration()
    case .finishMigration: try await finishMigration()
    case .olderSchema: try await openOlderSchema()
    case .crash: try await crash()
    case .crashAmidWrites: try await crashAmidWrites()
    case .secondOpener: try await openAgain()
    case .damage: try await damageCopy()
    default: try await damageBlobs()
    }
  }
}
