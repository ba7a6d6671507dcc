import Foundation
import LarderTesting
import Testing

@testable import Larder

/// What a view shows of an error that it knows nothing of.
@Suite struct ErrorTextTests {
  @Test func localizedDescriptionIsTheTextOfTheError() {
    let date = Date(timeIntervalSince1970: 0)
    let errors: [any Error & CustomStringConvertible] = [
      RepositoryError(.corrupted, "expected a header, found none", file: "/spots.json", offset: 7, keyHash: "ab"),
      SystemCallError(call: "fsync", errorNumber: 5),
      CacheError.absent(reason: "no forecast", since: date), CacheError.notCached, CacheError.circuitOpen(until: date),
      CacheError.quotaExceeded(until: date), CacheError.timedOut(.seconds(3)), CacheError.nothingToRevalidate, CacheError.unanswered,
    ]
    for error in errors {
      let text = (error as any Error).localizedDescription
      #expect(text == error.description && !text.contains("could not be completed"))
    }
    #expect(RepositoryError(.notFound, "no such spot").localizedDescription == "notFound: no such spot")
    #expect(CacheError.absent(reason: "no forecast", since: date).localizedDescription.contains("no forecast"))
  }

  @Test func itHoldsNothingOfARecord() async throws {
    struct Broken: Codable, Identifiable {
      var id: Int
      var secret: Double
    }
    let repository = try await LocalRepository<Broken>(inMemory: .init())
    let error = await #expect(throws: RepositoryError.self) { try await repository.save(Broken(id: 1, secret: .nan)) }
    let text = error?.localizedDescription
    #expect(text?.hasPrefix("encodingFailed: ") == true && text?.contains("secret") == false)
  }
}
