import Foundation
import Larder
import LarderTesting
import Testing

@Suite(.timeLimit(.minutes(15))) struct JSONFileBackendTests {
  let directory: TemporaryDirectory
  var file: URL { directory.file("spots.json") }

  init() throws { directory = try TemporaryDirectory() }

  @Test func recordsSurviveACleanClose() async throws {
    let spot = Spot("Jogashima", rating: 5)
    let revision: Revision
    do {
      let spots = try await LocalRepository<Spot>(jsonFile: file)
      #expect(spots.openReport.isNew)
      revision = try await spots.save(spot)
      try await spots.close()
    }
    #expect(try directory.names == ["spots.json"])
    let spots = try await LocalRepository<Spot>(jsonFile: file)
    #expect(try await spots.loadAll() == [spot])
    #expect(spots.revision(of: spot.id) == revision)
    #expect(spots.openReport.isClean && !spots.openReport.isNew)
    try await spots.close()
  }

  @Test func recordsSurviveAProcessThatIsGone() async throws {
    let spots = (0..<50).map { Spot("spot \($0)") }
    let repository = try await LocalRepository<Spot>(jsonFile: file)
    for spot in spots { try await repository.save(spot) }
    try await repository.delete(spots[7].id)

    let left = try directory.copy(except: "spots.json-lock")
    #expect(try left.names == ["spots.json", "spots.json-journal"])
    let recovered = try await LocalRepository<Spot>(jsonFile: left.file("spots.json"))
    #expect(recovered.openReport.replayedCommits == 51)
    #expect(recovered.openReport.isClean)
    #expect(Set(try await recovered.loadAll()) == Set(spots).subtracting([spots[7]]))
    try await recovered.checkpoint()
    try await recovered.save(spots[7])
    try await recovered.close()
    #expect(try left.names == ["spots.json"])
    let again = try await LocalRepository<Spot>(jsonFile: left.file("spots.json"))
    #expect(Set(try await again.loadAll()) == Set(spots))
  }

  @Test func theFileIsAJSONDocumentThatPeopleCanRead() async throws {
    struct Named: Codable, Identifiable, Sendable { let id: String; var text = "x" }
    let repository = try await LocalRepository<Named>(jsonFile: file, schema: .init("named"))
    try await repository.save(contentsOf: ["b", "a", "\u{0}\n\"\\é", ""].map { Named(id: $0) })
    try await repository.delete("b")
    try await repository.close()
    let text = try String(contentsOf: file, encoding: .utf8)
    let document = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    let records = try #require(document["records"] as? [[String: Any]])
    #expect(records.compactMap { $0["id"] as? String } == ["", "\u{0}\n\"\\é", "a", "b"])
    #expect(records.last?["deleted"] as? Bool == true)
    #expect(document["count"] as? Int == 4)
  }

  /// A copy of what the journal holds, at each save, made this a hundred times as dear over 20,000 changes.
  @Test func aSaveCostsTheSameOverAnyJournal() throws {
    func record(_ key: Int, _ commit: UInt64) -> StoredRecord {
      StoredRecord(collection: "spots", key: RecordKey("\(key)"), revision: Revision(commit), schemaVersion: 1, value: Data("{}".utf8))
    }
    func store(_ name: String, changes: Int) throws -> JSONFileBackend {
      let backend = JSONFileBackend(file: directory.file(name))
      _ = try backend.openAndRecover(.init()) { _ in }
      try backend.commit(WriteBatch(records: (0...changes).map { record($0, 1) }, commits: 1...1, durability: .buffered))
      return backend
    }
    let (empty, full) = (try store("empty.json", changes: 0), try store("full.json", changes: 20_000))
    var times: [[Duration]] = [[], []]
    for commit in 2...1_500 as ClosedRange<UInt64> {
      for (index, backend) in [empty, full].enumerated() {
        let batch = WriteBatch(records: [record(0, commit)], commits: commit...commit, durability: .buffered)
        times[index].append(try ContinuousClock().measure { try backend.commit(batch) })
      }
    }
    let (few, many) = (times[0].sorted()[750], times[1].sorted()[750])
    #expect(many < few * 4, "\(few) over an empty journal, \(many) over 20,000 changes")
    try empty.close()
    try full.close()
  }

  /// A lone save in a large store is not worth a new document, neither in a pause nor on close.
  @Test func aLargeFileIsNotRewrittenForALoneSave() throws {
    let files = SimulatedFileSystem()
    func open() throws -> (JSONFileBackend, OpenReport, Int) {
      let backend = JSONFileBackend(file: URL(fileURLWithPath: "/data/spots.json"), fileSystem: files, tuning: .init(smallFile: 4_096))
      var count = 0
      let report = try backend.openAndRecover(.init()) { _ in count += 1 }
      return (backend, report, count)
    }
    func save(_ keys: Range<Int>, _ commit: UInt64, on backend: JSONFileBackend, _ durability: Durability = .durable) throws {
      let records = keys.map {
        StoredRecord(
          collection: "spots", key: RecordKey("\($0)"), revision: Revision(commit), schemaVersion: 1,
          value: Data("\"\(String(repeating: "x", count: 200))\"".utf8))
      }
      try backend.commit(WriteBatch(records: records, commits: commit...commit, durability: durability))
    }
    var (backend, _, _) = try open()
    try save(0..<2_000, 1, on: backend)
    #expect(backend.isCheckpointWorthwhile)
    try backend.close()
    #expect(files.paths == ["/data/spots.json"])
    let document = try #require(files.contents(of: "/data/spots.json"))
    for commit in 2...4 as ClosedRange<UInt64> {
      let (reopened, report, count) = try open()
      backend = reopened
      #expect(count == 2_000 + Int(commit) - 2 && report.isClean && report.replayedCommits == Int(commit) - 2)
      try save((2_000 + Int(commit))..<(2_001 + Int(commit)), commit, on: backend, .buffered)
      #expect(!backend.isCheckpointWorthwhile)
      try backend.close()
      #expect(files.contents(of: "/data/spots.json") == document)
      for image in files.crashImages(.powerLoss) {
        #expect(image.fileSystem.contents(of: "/data/spots.json-journal") == files.contents(of: "/data/spots.json-journal"))
      }
    }
    (backend, _, _) = try open()
    // Worth it only once the journal, of which a part is allocated ahead, is half as large as the document.
    var commit: UInt64 = 5
    while !backend.isCheckpointWorthwhile {
      try save(0..<500, commit, on: backend)
      commit += 1
      let journal = try #require(files.contents(of: "/data/spots.json-journal"))
      if journal.count < document.count / 2 { #expect(!backend.isCheckpointWorthwhile) }
      try #require(journal.count < document.count * 2)
    }
    let journal = try #require(files.contents(of: "/data/spots.json-journal"))
    #expect(journal.count >= document.count / 2 && !backend.wantsCheckpoint)  // which is for journals over 4 MiB
    try backend.checkpoint()
    #expect(files.contents(of: "/data/spots.json") != document)
    try backend.close()
    #expect(files.paths == ["/data/spots.json"])
    #expect(try open().2 == 2_003)
  }

  @Test func aSecondOpenIsRefusedAndTheFirstIsUndisturbed() async throws {
    let first = try await LocalRepository<Spot>(jsonFile: file)
    let error = await #expect(throws: RepositoryError.self) { _ = try await LocalRepository<Spot>(jsonFile: file) }
    #expect(error?.code == .alreadyOpen)
    try await first.save(Spot("still here"))
    #expect(try await first.count() == 1)
    try await first.close()
  }
}
