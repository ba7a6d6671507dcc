import Foundation
import Larder
import LarderSQLite
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// A word that is in records and keys must be in no text that an app would log, and in no name of a file.
@Suite("Security: nothing private is printed", .timeLimit(.minutes(15))) struct SecretTests {
  /// The word, and a part of it that would be in a shortened text.
  private static let canary = "hunter2-8c1f0d"
  private static let part = "hunter2"

  private struct Letter: Codable, Identifiable, Equatable, Sendable {
    let id: String
    var text: String
    var weight = 1.0
  }

  /// A letter whose text became a number.
  private struct NumberedLetter: Codable, Identifiable, Sendable {
    let id: String
    var text: Int
  }

  /// A value that throws errors which hold the word.
  private struct Refusing: Codable, Identifiable, Sendable {
    let id: String
    init(id: String) { self.id = id }
    func encode(to encoder: any Encoder) throws {
      throw EncodingError.invalidValue(canary, .init(codingPath: [], debugDescription: "cannot encode \(canary)"))
    }
    init(from decoder: any Decoder) throws {
      throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "cannot decode \(canary)"))
    }
  }

  private struct Spoken: Error, CustomStringConvertible { var description: String { canary } }

  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Expects a failure with a code, and that no text about it holds the word.
  private func expect(_ code: RepositoryError.Code, _ what: String, _ operation: () async throws -> Void) async {
    do {
      try await operation()
      Issue.record("\(what): expected \(code), and it succeeded")
    } catch let error as RepositoryError {
      #expect(error.code == code, "\(what)")
      expectNoSecret(error, what)
    } catch {
      Issue.record("\(what): expected a RepositoryError")
    }
  }

  private func expectNoSecret(_ error: RepositoryError, _ what: String) {
    let texts = [
      "\(error)", String(describing: error), String(reflecting: error), error.localizedDescription, error.message, error.description,
      (error as any Error).localizedDescription, error.file ?? "", error.keyHash ?? "", String(describing: error.code),
    ]
    for text in texts { #expect(!text.contains(Self.part), "\(what): \(error.code)") }
    if let inner = error.underlying as? RepositoryError { expectNoSecret(inner, what) }
  }

  private func letter(_ id: String = canary, _ text: String = canary) -> Letter { Letter(id: id, text: text) }

  private func open(
    _ store: TestBackend, _ name: String, version: Int = 1, migrations: [Migration] = [], options: StoreOptions = .init()
  ) async throws -> LocalRepository<Letter> {
    let schema = RepositorySchema<Letter>("letters", version: version, indexes: [.unique(\.text)], migrations: migrations)
    return try await LocalRepository(backend: store.backend(directory.file(name)), schema: schema, options: options)
  }

  @Test(arguments: [TestBackend.json, .sqlite]) func noErrorOfAWriteHoldsTheWord(_ store: TestBackend) async throws {
    let letters = try await open(store, "letters", options: .init(limits: .init(recordBytes: 300)))
    try await letters.save(letter())
    await expect(.alreadyExists, "insert") { try await letters.insert(letter()) }
    await expect(.notFound, "update") { try await letters.update(Self.canary + "x") { $0.weight = 2 } }
    await expect(.uniqueViolation, "unique") { try await letters.save(letter("other")) }
    await expect(.revisionMismatch, "revision") { try await letters.save(letter(), ifRevision: Revision(99)) }
    await expect(.tooLarge, "size") { try await letters.save(letter("big", String(repeating: Self.canary, count: 99))) }
    await expect(.invalidKey, "key") { try await letters.save(letter(String(repeating: Self.canary, count: 999), "x")) }
    await expect(.encodingFailed, "number") { try await letters.save(Letter(id: "n", text: Self.canary, weight: .nan)) }
    await expect(.cancelled, "cancelled") {
      let gate = Flag()
      let task = Task {
        try await until { gate.isSet || Task.isCancelled }
        try await letters.save(letter("c", Self.canary + "c"))
      }
      task.cancel()
      gate.set()
      do { try await task.value } catch is CancellationError { throw RepositoryError(.cancelled) }
    }
    await expect(.alreadyOpen, "second") { _ = try await open(store, "letters") }
    #expect(!"\(letters.openReport) \(String(reflecting: letters.openReport))".contains(Self.part))
    try await letters.close()
    await expect(.closed, "closed") { try await letters.save(letter()) }
    #expect(try directory.names.allSatisfy { !$0.contains(Self.part) })
  }

  @Test(arguments: [TestBackend.json, .sqlite]) func noErrorOfCodingHoldsTheWord(_ store: TestBackend) async throws {
    let letters = try await open(store, "letters")
    try await letters.save(letter())
    try await letters.close()
    let backend = store.backend(directory.file("letters"))
    let numbered = try await LocalRepository<NumberedLetter>(backend: backend, schema: .init("letters"))
    await expect(.decodingFailed, "strict") { _ = try await numbered.loadAll(strict: true) }
    let undecodable = numbered.snapshot.undecodable
    #expect(undecodable.count == 1)
    #expect(!"\(undecodable) \(String(reflecting: undecodable)) \(numbered.openReport)".contains(Self.part))
    for record in undecodable { expectNoSecret(record.error, "undecodable") }
    try await numbered.close()
    let refusing = try await LocalRepository<Refusing>(backend: store.backend(directory.file("letters")), schema: .init("letters"))
    await expect(.encodingFailed, "encode") { try await refusing.save(Refusing(id: Self.canary)) }
    await expect(.decodingFailed, "decode") { _ = try await refusing.loadAll(strict: true) }
    try await refusing.close()
  }

  @Test(arguments: [TestBackend.json, .sqlite]) func noErrorOfAMigrationHoldsTheWord(_ store: TestBackend) async throws {
    let letters = try await open(store, "letters")
    try await letters.save(letter())
    try await letters.close()
    let said = Mutex("")
    let options = StoreOptions(migration: .init(mode: .eager, progress: { progress in said.withLock { $0 += "\(progress)" } }))
    let migrated = try await open(store, "letters", version: 2, migrations: [.init(from: 1) { _ in throw Spoken() }], options: options)
    await expect(.decodingFailed, "read") { _ = try await migrated.loadAll(strict: true) }
    let undecodable = migrated.snapshot.undecodable
    #expect(undecodable.map(\.error.code) == [.migrationFailed])
    for record in undecodable { expectNoSecret(record.error, "migration") }
    #expect(!"\(undecodable) \(migrated.migrationProgress) \(said.withLock { $0 })".contains(Self.part))
    try await migrated.close()
    let raised = try await open(store, "letters", version: 3, migrations: [.init(from: 1) { _ in }, .init(from: 2) { _ in }])
    try await raised.finishMigration()
    try await raised.close()
    await expect(.newerSchema, "older app") { _ = try await open(store, "letters") }
    #expect(try directory.names.allSatisfy { !$0.contains(Self.part) })
  }

  @Test(arguments: [TestBackend.json, .sqlite]) func noReportOfDamageHoldsTheWord(_ store: TestBackend) async throws {
    let letters = try await open(store, "letters")
    for number in 0..<4 { try await letters.save(letter("\(Self.canary)-\(number)", "\(Self.canary)-\(number)")) }
    try await letters.checkpoint()
    try await letters.save(letter("\(Self.canary)-late", "\(Self.canary)-late"))
    let files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    try await letters.close()
    // Damage that none can miss: a byte of a record's value, and no log that has it anew.
    let closed = try directory.contents()
    let main = try #require(closed["letters"])
    let value = try #require(main.range(of: Data(Self.canary.utf8)))
    var damagedValue = closed
    damagedValue["letters"]?[value.lowerBound] ^= 1
    try directory.replace(with: damagedValue)
    await expect(.corrupted, "a value") { _ = try await Store.open(store.backend(directory.file("letters"))) }

    var random = SeededGenerator(Seeds.list(1, for: "noReportOfDamageHoldsTheWord")[0])
    for round in 0..<Torture.count(20, full: 2_000) {
      var damaged = files
      let name = files.keys.sorted()[round % files.count]
      let offset = try #require(files[name]).indices.randomElement(using: &random) ?? 0
      damaged[name]?[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      if round % 4 == 0 { damaged[name]?.removeLast(Int.random(in: 1..<200, using: &random)) }
      try directory.replace(with: damaged)
      do {
        let opened = try await Store.open(store.backend(directory.file("letters")))
        let (report, verified) = (opened.openReport, await opened.verify())
        #expect(!"\(report) \(String(reflecting: report)) \(verified) \(String(reflecting: verified))".contains(Self.part))
        for problem in verified.problems { expectNoSecret(problem, "verify") }
        try await opened.close()
      } catch {
        expectNoSecret(error, "damage at \(offset) of \(name)")
      }
      #expect(try directory.names.allSatisfy { !$0.contains(Self.part) })
    }
  }

  /// The rest of the codes: a disk that is full, forbids, fails, or fails to sync.
  @Test func noErrorOfADiskHoldsTheWord() async throws {
    var codes = Set<String>()
    for number in [ENOSPC, EACCES, EIO, EMFILE] {
      for step in 1...30 {
        let files = SimulatedFileSystem()
        let file = URL(fileURLWithPath: "/data/letters.json")
        do {
          let letters = try await LocalRepository<Letter>(
            backend: JSONFileBackend(file: file, fileSystem: files), schema: .init("letters"))
          try await letters.save(letter())
          files.fail(FaultPlan(.operation(step), errorNumber: number, isPermanent: true))
          for turn in 0..<3 {
            do {
              try await letters.save(letter("\(Self.canary)\(turn)", Self.canary))
              try await letters.checkpoint()
            } catch {
              expectNoSecret(error, "step \(step)")
              codes.insert(error.code.description)
            }
          }
          try await letters.close()
        } catch {
          expectNoSecret(error, "step \(step)")
          codes.insert(error.code.description)
        }
        #expect(files.paths.allSatisfy { !$0.contains(Self.part) })
      }
    }
    for code in ["full", "protectedDataUnavailable", "inputOutput", "outcomeUnknown", "poisoned"] {
      #expect(codes.contains(code), "\(code)")
    }
  }
}
