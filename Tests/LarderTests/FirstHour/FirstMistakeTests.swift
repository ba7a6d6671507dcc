import Foundation
import LarderSQLite
import TestSupport
import Testing

@testable import Larder

/// Mistakes that compile: each is told at its first use, with what to do about it.
@Suite("Mistakes of the first hour", .timeLimit(.minutes(15))) struct FirstMistakeTests {
  private struct Anew: Codable, Identifiable {
    var id = UUID()
    var name: String
    private enum CodingKeys: String, CodingKey { case name }
  }

  private struct MaybeNumbered: Codable, Identifiable {
    var id: Int?
    var name: String
  }

  private func message(_ code: RepositoryError.Code, _ body: () async throws -> Void) async -> String? {
    do {
      try await body()
      return nil
    } catch {
      return (error as? RepositoryError)?.code == code ? error.localizedDescription : nil
    }
  }

  @Test func anIdThatIsMadeAnewIsRefusedAtTheFirstSave() async throws {
    let repository = try await LocalRepository<Anew>(inMemory: .init())
    let text = await message(.decodingFailed) { try await repository.save(Anew(name: "a")) }
    #expect(text?.contains("encode and decode `id`") == true)
    #expect(try await repository.count() == 0)
  }

  @Test(arguments: [TestBackend.json, .sqlite]) func aFileThatIsOpenedTwiceSaysToShareTheRepository(_ kind: TestBackend) async throws {
    let directory = try TemporaryDirectory()
    let first = try await LocalRepository<Spot>(backend: kind.backend(directory.file("spots")))
    let text = await message(.alreadyOpen) { _ = try await LocalRepository<Spot>(backend: kind.backend(directory.file("spots"))) }
    #expect(text?.contains("open it once, and hand the repository to all code that needs it") == true, "\(text ?? "-")")
    try await first.close()
    try await LocalRepository<Spot>(backend: kind.backend(directory.file("spots"))).close()
  }

  @Test(arguments: ["https://example.org/spots.json", "spots.json"]) func aURLOfNoFileIsRefused(_ text: String) async throws {
    let url = try #require(URL(string: text))
    let json = await message(.unsupported) { _ = try await LocalRepository<Spot>(jsonFile: url) }
    #expect(json?.contains("expected a file URL") == true)
    let sqlite = await message(.unsupported) { _ = try await LocalRepository<Spot>(sqliteFile: url) }
    #expect(sqlite?.contains("expected a file URL") == true)
  }

  @Test func aQueryThatNeedsAnIndexNamesIt() async throws {
    let spots = LocalRepository(previewing: [Spot("Brest")])
    let near = await message(.unsupported) { _ = try await spots.fetch(Query().near(latitude: 1, longitude: 1)) }
    #expect(near?.contains("needs a .geo index") == true)
    let words = await message(.unsupported) { _ = try await spots.fetch(Query().matching("pier")) }
    #expect(words?.contains("needs a .fullText index") == true)
  }

  @Test func anUpdateThatChangesTheIdSaysWhatToDo() async throws {
    let spot = Spot("Brest")
    let spots = LocalRepository(previewing: [spot])
    let text = await message(.invalidKey) { try await spots.update(spot.id) { $0 = Spot("Brest") } }
    #expect(text?.contains("delete the record, and insert another") == true)
  }

  /// An id may be an optional; `nil` is an id like any other, and there is one such record.
  @Test func anOptionalIdIsStored() async throws {
    let repository = try await LocalRepository<MaybeNumbered>(inMemory: .init())
    try await repository.save(MaybeNumbered(id: 1, name: "one"))
    try await repository.save(MaybeNumbered(id: nil, name: "none"))
    #expect(try await repository.find(by: 1)?.name == "one")
    #expect(try await repository.find(by: nil)?.name == "none")
  }
}
