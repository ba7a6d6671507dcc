import Foundation
import Larder
import Testing

private nonisolated struct Spot: Codable, Identifiable, Sendable {
  let id: UUID
  var name = "Jogashima"
}

/// A spot as a later version of the app has it: with a property that older records lack.
private nonisolated struct RatedSpot: Codable, Identifiable, Sendable {
  let id: UUID
  var name: String
  var rating: Int
}

/// A spot whose id is written and not read, as the compiler makes it of `let id = UUID()`.
private nonisolated struct ForgetfulSpot: Codable, Identifiable, Sendable {
  let id: UUID
  var name = "Jogashima"

  init() { id = UUID() }
  init(from decoder: any Decoder) throws {
    self.init()
    name = try decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .name)
  }
}

/// The mistakes of the guide "In an Xcode app" that Larder answers when the app runs; those that the compiler answers are in Docs/Mistakes.
@Suite(.timeLimit(.minutes(1))) struct MistakesTests {
  private let url = FileManager.default.temporaryDirectory.appending(path: "larder-mistakes-\(UUID())/spots.json")

  /// Returns the text of the error that a body throws.
  private func text(_ body: () async throws -> Void) async -> String {
    do {
      try await body()
      return "no error"
    } catch {
      return error.localizedDescription
    }
  }

  @Test func anIDThatChangesWithEachReadingIsNotSaved() async throws {
    let spots = try await LocalRepository<ForgetfulSpot>(inMemory: .init())
    let found = await text { try await spots.save(ForgetfulSpot()) }
    #expect(found.contains("decodingFailed: expected the id of the record's key, found another after decoding; encode and decode `id`"))
    let count = try await spots.count()
    #expect(count == 0)
  }

  @Test func aSecondOpenSaysThatTheFirstHasIt() async throws {
    let spots = try await LocalRepository<Spot>(jsonFile: url)
    let found = await text { _ = try await LocalRepository<Spot>(jsonFile: url) }
    #expect(found.contains("open it once, and hand the repository to all code that needs it"))
    try await spots.close()
  }

  @Test func aURLThatIsNoFileIsRefused() async throws {
    let url = try #require(URL(string: "spots.json"))
    let found = await text { _ = try await LocalRepository<Spot>(jsonFile: url) }
    #expect(found.contains("unsupported: expected a file URL, found another; make it with"))
  }

  @Test func aNameThatComesLaterIsRefusedUntilItSaysWhatItWas() async throws {
    let before = try await LocalRepository<Spot>(jsonFile: url)
    try await before.save(Spot(id: UUID()))
    try await before.close()

    let found = await text { _ = try await LocalRepository<Spot>(jsonFile: url, schema: RepositorySchema("spots")) }
    #expect(found.contains("unsupported: expected the collection spots, found 1 records under the default name records"))
    #expect(found.contains(#"open it with RepositorySchema("spots", renamedFrom: "records"), or without a name"#))

    let after = try await LocalRepository<Spot>(jsonFile: url, schema: RepositorySchema("spots", renamedFrom: "records"))
    let count = try await after.count()
    #expect(count == 1)
    try await after.close()
  }

  @Test func recordsWithoutANewPropertyStayInTheFile() async throws {
    let before = try await LocalRepository<Spot>(jsonFile: url)
    try await before.save(Spot(id: UUID()))
    try await before.close()

    let after = try await LocalRepository<RatedSpot>(jsonFile: url)
    let readable = try await after.loadAll()
    #expect(readable.isEmpty)
    #expect(after.snapshot.undecodable.count == 1)
    try await after.close()

    let again = try await LocalRepository<Spot>(jsonFile: url)
    let count = try await again.count()
    #expect(count == 1)
    try await again.close()
  }
}
