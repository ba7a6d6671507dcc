import Foundation
import Larder
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderBlobs

/// The steps of a workload on a blob store, and the blobs that must be there after each.
private enum BlobStep: Sendable {
  case save(String, String)
  case stream(String, [String])
  case abort(String)
  case remove(String)
  case clear
  case reopen

  /// The store as the steps leave it.
  static func states(_ steps: [BlobStep], limit: Int) -> [[String: String]] {
    var order: [String] = []
    var states: [[String: String]] = [[:]]
    for step in steps {
      var state = states[states.count - 1]
      func put(_ key: String, _ text: String) {
        order.removeAll { $0 == key }
        order.append(key)
        state[key] = text
        if order.count > limit { state[order.removeFirst()] = nil }
      }
      switch step {
      case .save(let key, let text): put(key, text)
      case .stream(let key, let chunks): put(key, chunks.joined())
      case .remove(let key):
        order.removeAll { $0 == key }
        state[key] = nil
      case .clear: (order, state) = ([], [:])
      case .abort, .reopen: break
      }
      states.append(state)
    }
    return states
  }
}

/// Three sectors, so that it can be torn.
private func text(_ letter: String) -> String { String(repeating: letter, count: 1300) }

@Suite("Crashes and faults of a blob store", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct BlobCrashTests {
  private struct Broken: Error, CustomStringConvertible { let description: String }

  private static let limits = BlobStore.Limits(diskCount: 3)
  private static let keys = ["a", "b", "c", "d", "e"]

  fileprivate static let workloads: [(name: String, steps: [BlobStep])] = [
    ("first", [.save("a", text("1"))]),
    ("replaced", [.save("a", text("1")), .save("a", text("2")), .save("a", text("3"))]),
    ("streamed", [.stream("a", [text("1"), text("2")]), .abort("b"), .stream("a", [text("3")])]),
    ("removed", [.save("a", text("1")), .save("b", text("2")), .remove("a"), .save("a", text("3"))]),
    ("evicted", [.save("a", text("1")), .save("b", text("2")), .save("c", text("3")), .save("d", text("4")), .save("e", text("5"))]),
    ("cleared", [.save("a", text("1")), .save("b", text("2")), .clear, .save("a", text("3"))]),
    ("reopened", [.save("a", text("1")), .reopen, .save("a", text("2")), .save("b", text("3")), .reopen]),
  ]

  /// Runs the steps; blocking.
  private static func run(
    _ steps: [BlobStep], on fileSystem: any FileSystem, comparesHashes: Bool = true, _ done: (Int) -> Void
  ) throws {
    var blobs = try open(fileSystem, comparesHashes).blobs
    for (number, step) in steps.enumerated() {
      let store = blobs
      switch step {
      case .save(let key, let text): try blocking { try await store.save(text, for: key) }
      case .stream(let key, let chunks):
        try blocking {
          let writer = try await store.writer(for: key)
          for chunk in chunks { try await writer.write(Data(chunk.utf8)) }
          try await writer.finish()
        }
      case .abort(let key):
        try blocking {
          let writer = try await store.writer(for: key)
          try await writer.write(Data(text("x").utf8))
          await writer.abort()
        }
      case .remove(let key): _ = try blocking { try await store.remove(key) }
      case .clear: try blocking { try await store.clear() }
      case .reopen:
        try blocking { try await store.close() }
        blobs = try open(fileSystem, comparesHashes).blobs
      }
      done(number + 1)
    }
  }

  private static func open(
    _ fileSystem: any FileSystem, _ comparesHashes: Bool = true
  ) throws -> (blobs: BlobStore, reports: Reports) {
    let reports = Reports()
    let blobs = try blocking {
      try await BlobStore(
        directory: BlobShelf.directory, limits: limits, fileSystem: fileSystem,
        tuning: .init(checkpoint: .manual, comparesHashes: comparesHashes)
      ) { reports.add($0) }
    }
    return (blobs, reports)
  }

  /// Returns the texts that the store has for the keys, read from disk.
  private static func contents(_ blobs: BlobStore) throws -> [String: String] {
    try blocking {
      var found: [String: String] = [:]
      blobs.removeFromMemory()
      for key in keys { found[key] = try await blobs.blob(for: key).map { String(decoding: $0.data, as: UTF8.self) } }
      return found
    }
  }

  /// Opens what a crash has left, and compares it with the state that was acknowledged, or the one that was about to be.
  private static func check(
    _ files: SimulatedFileSystem, _ steps: [BlobStep], done: Int, comparesHashes: Bool = true
  ) throws {
    let states = BlobStep.states(steps, limit: limits.diskCount)
    let (blobs, reports) = try open(files, comparesHashes)
    let found = try contents(blobs)
    let next = done < steps.count ? steps[done] : nil
    var isAllowed = found == states[done] || found == states[min(done + 1, steps.count)]
    // An interrupted `clear` has removed some of them.
    if case .clear = next { isAllowed = found.allSatisfy { states[done][$0.key] == $0.value } }
    let kinds = found.mapValues { Set($0.map(String.init)).sorted().joined() + "×\($0.count)" }
    guard isAllowed else { throw Broken(description: "wrong contents after \(done) steps: \(kinds)") }
    guard reports.codes.isEmpty else { throw Broken(description: "damage after a crash: \(reports.text)") }
    guard blobs.openReport.damage == nil else { throw Broken(description: "the index was damaged") }
    guard blobs.persistedKeys == found.keys.sorted() else { throw Broken(description: "the index lists other keys") }
    let names = files.paths.filter { !$0.contains("/blob-index.json") }
    guard names.count == found.count else { throw Broken(description: "files are left: \(names)") }
    try blocking { try await blobs.close() }
    let (again, _) = try open(files, comparesHashes)
    guard again.openReport.isClean else { throw Broken(description: "healing was not enough: \(again.openReport)") }
    try blocking { try await again.close() }
  }

  private static func explore(
    _ steps: [BlobStep], seed: UInt64, comparesHashes: Bool = true, images: Int = Torture.count(1, full: 12),
    through wrap: (SimulatedFileSystem) -> any FileSystem = { $0 }
  ) throws -> CrashExplorer.Exploration {
    try CrashExplorer(seed: seed, imagesPerPoint: images).explore(through: wrap) { files, promise in
      try run(steps, on: files, comparesHashes: comparesHashes, promise)
    } check: { image, done in
      try check(image.fileSystem, steps, done: done.last ?? 0, comparesHashes: comparesHashes)
    }
  }

  @Test func noCrashLosesTearsOrLeavesABlob() async throws {
    let seed = try #require(Seeds.list(1, for: "noCrashLosesTearsOrLeavesABlob").first)
    let result = try await onOwnThread {
      try Self.workloads.reduce(into: CrashExplorer.Exploration()) { result, workload in
        do {
          result += try Self.explore(workload.steps, seed: seed)
        } catch { throw Broken(description: "\(workload.name): \(error)") }
      }
    }
    print("figures: crash images of blob stores: \(result.images) at \(result.points) points")
    #expect(result.images >= Torture.count(400, full: 1_500))
  }

  // MARK: Teeth

  private func finding(
    comparesHashes: Bool = true, through wrap: @escaping @Sendable (SimulatedFileSystem) -> any FileSystem
  ) async throws -> String {
    try await onOwnThread {
      do {
        _ = try Self.explore(
          Self.workloads[1].steps, seed: 1, comparesHashes: comparesHashes, images: Torture.count(12, full: 40), through: wrap)
        return ""
      } catch let failure as CrashExplorer.Failure { return "\(failure.underlying)" }
    }
  }

  @Test func aMissingDirectorySyncIsFound() async throws {
    let found = try await finding { DirectorySyncIgnoring($0) }
    #expect(found.hasPrefix("wrong contents") || found == "the index was damaged", "\(found)")
  }

  /// The comparison of hashes makes it a miss; without it, bytes are returned that nobody has stored.
  @Test(arguments: [(true, "damage after a crash"), (false, "wrong contents")])
  func aBlobThatIsNotSyncedIsFound(comparesHashes: Bool, as finding: String) async throws {
    let found = try await self.finding(comparesHashes: comparesHashes) {
      WatchedFiles(base: $0, skipsSync: { $0.hasSuffix("-tmp") && !$0.contains("index") })
    }
    #expect(found.hasPrefix(finding), "\(found)")
  }

  // MARK: Faults

  /// Each operation in turn fails, once or from then on: a step that throws has changed nothing, and the next open finds nothing wrong.
  @Test(arguments: [RepositoryError.Code.full, .inputOutput])
  func afterAnyFaultTheOldBlobOrTheNewOneIsThere(code: RepositoryError.Code) async throws {
    let count = try await onOwnThread {
      var count = 0
      for (name, steps) in Self.workloads {
        for isPermanent in [false, true] {
          // The two codes share the operations between them, unless all are asked for.
          let first = Torture.count(code == .full ? 1 : 2, full: 1)
          for operation in stride(from: first, through: .max, by: Torture.count(2, full: 1)) {
            let files = SimulatedFileSystem()
            files.fail(FaultPlan(.operation(operation), code: code, isPermanent: isPermanent, writtenBytes: 700))
            do {
              try Self.runWithFaults(steps, on: files)
            } catch { throw Broken(description: "\(name), operation \(operation), permanent \(isPermanent): \(error)") }
            if files.operationCount < operation { break }
            count += 1
          }
        }
      }
      return count
    }
    print("faults in blob stores: \(count)")
    #expect(count > Torture.count(250, full: 500))
  }

  private static func runWithFaults(_ steps: [BlobStep], on files: SimulatedFileSystem) throws {
    var done = 0
    do {
      try run(steps, on: files) { done = $0 }
      files.fail()
      try check(files.copy(), steps, done: steps.count)
    } catch let error as RepositoryError {
      files.fail()
      guard error.code != .corrupted, error.code != .closed else { throw error }
      try check(files.copy(), steps, done: done)
    }
  }

  /// Where the process lives on, a write that failed has changed nothing that is read.
  @Test func aFailedSaveLeavesTheOldBlobReadable() async throws {
    for operation in 1... {
      let shelf = try await BlobShelf()
      try await shelf.blobs.save("old", for: "a")
      let before = shelf.files.operationCount
      shelf.files.fail(FaultPlan(.operation(before + operation), code: .full))
      let blobs = shelf.blobs
      let failure = await code { try await blobs.save("new", for: "a") }
      let isHit = shelf.files.operationCount >= before + operation
      shelf.files.fail()
      #expect(try await shelf.stored("a") == (failure == nil ? "new" : "old"), "operation \(operation)")
      if failure != nil, failure != .outcomeUnknown {
        #expect(shelf.blobPaths.count == 1, "operation \(operation)")
        try await blobs.save("newer", for: "a")
        #expect(try await shelf.stored("a") == "newer")
      }
      if !isHit { break }
    }
  }

  /// The disk is full until a blob goes: the way out must not need space.
  @Test func aFullDiskCanBeCleared() async throws {
    let isFull = Mutex(false)
    let files = SimulatedFileSystem()
    let look: WatchedFiles.Look = { (operation, path) throws(RepositoryError) in
      if operation == "remove", !path.contains("index"), !path.contains("tmp") { isFull.withLock { $0 = false } }
      if operation == "create" || operation == "write", isFull.withLock({ $0 }) { throw RepositoryError(.full, file: path) }
    }
    let watched = WatchedFiles(base: files, look: look)
    let shelf = try await BlobShelf(on: files, through: watched)
    try await shelf.blobs.save("A", for: "a")
    try await shelf.close()
    let again = try await BlobShelf(on: files, through: watched)
    isFull.withLock { $0 = true }
    let blobs = again.blobs
    #expect(await code { try await blobs.save("B", for: "b") } == .full)
    #expect(try await again.stored("a") == "A")
    try await blobs.clear()
    #expect(again.blobPaths.isEmpty && blobs.persistedKeys.isEmpty)
  }

  // MARK: Faults after which the program goes on

  /// Each operation of the second save fails once, the program saves again and again, and then the power goes: what was acknowledged is
  /// there.
  @Test(arguments: [RepositoryError.Code.full, .inputOutput])
  func afterAnyFaultWhatIsAcknowledgedNextSurvivesACrash(code: RepositoryError.Code) async throws {
    for removes in [false, true] {
      for operation in 1... {
        let shelf = try await BlobShelf()
        let blobs = shelf.blobs
        try await blobs.save(text("1"), for: "a")
        let before = shelf.files.operationCount
        shelf.files.fail(FaultPlan(.operation(before + operation), code: code, writtenBytes: 700))
        // What may be there: the newest that was acknowledged, and whatever failed after it.
        var allowed: Set<String?> = [text("1")]
        func note(_ failure: RepositoryError.Code?, _ contents: String?) {
          if failure == nil { allowed = [contents] } else { allowed.insert(contents) }
        }
        for number in 2...4 {
          note(await TestSupport.code { try await blobs.save(text("\(number)"), for: "a") }, text("\(number)"))
          if removes { note(await TestSupport.code { try await blobs.remove("a") }, nil) }
        }
        let isHit = shelf.files.operationCount >= before + operation
        for image in shelf.files.crashImages(limit: 6, seed: UInt64(operation)) {
          let again = try await BlobShelf(on: image.fileSystem)
          let found = try await again.stored("a")
          #expect(
            allowed.contains(found),
            "operation \(operation): \(found?.prefix(1) ?? "none"), not \(allowed.map { $0?.prefix(1) ?? "none" })"
          )
          #expect(again.reports.codes.isEmpty, "operation \(operation)")
        }
        if !isHit { break }
      }
    }
  }

  /// The index's sync fails in the second save: the third may not touch the file that the durable index names.
  @Test func aPoisonedStoreTouchesNoFile() async throws {
    let files = SimulatedFileSystem()
    let isFailing = Mutex(false)
    let changed = Mutex<[String]>([])
    let look: WatchedFiles.Look = { (operation, path) throws(RepositoryError) in
      if operation == "sync", path.contains("-journal"), isFailing.withLock({ $0 }) { throw RepositoryError(.inputOutput, file: path) }
      if ["create", "write", "rename", "remove"].contains(operation) { changed.withLock { $0.append("\(operation) \(path)") } }
    }
    let shelf = try await BlobShelf(on: files, through: WatchedFiles(base: files, look: look))
    let blobs = shelf.blobs
    try await blobs.save("1", for: "a")
    try await blobs.save("b", for: "b")
    let open = try await blobs.writer(for: "c")
    isFailing.withLock { $0 = true }
    #expect(await code { try await blobs.save("2", for: "a") } == .outcomeUnknown)
    isFailing.withLock { $0 = false }
    changed.withLock { $0 = [] }
    #expect(await code { try await blobs.save("3", for: "a") } == .poisoned)
    #expect(await code { try await blobs.remove("a") } == .poisoned)
    #expect(await code { try await blobs.clear() } == .poisoned)
    #expect(await code { try await open.write(Data("c".utf8)) } == .poisoned)
    #expect(try await shelf.stored("a") == "1")
    #expect(changed.withLock { $0 } == [])
    let again = try await BlobShelf(on: files.copy())
    #expect(["1", "2"].contains(try await again.stored("a")))
    #expect(try await again.stored("b") == "b")
  }
}
