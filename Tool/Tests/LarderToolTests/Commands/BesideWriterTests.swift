import Foundation
import Larder
import LarderToolKit
import Testing

/// The tool beside an app that writes.
@Suite(.timeLimit(.minutes(15))) struct BesideWriterTests {
  @Test(arguments: StoreKind.allCases) func `every reading is of one moment, and the app goes on`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let file = try StoreFile(newAt: workspace.path("spots.\(kind.rawValue)"))
    let store = try await Store.open(file.backend, options: StoreOptions(durability: .buffered))
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    func save(_ rating: Int) async throws {
      // One commit: a reading that has one of them alone, or of different commits, is of no moment that ever was.
      try await spots.save(contentsOf: ["a", "b"].map { Spot(id: $0, name: "Pier", rating: rating, tags: []) })
    }
    try await save(0)
    let writer = Task {
      var rating = 0
      while !Task.isCancelled {
        rating += 1
        try await save(rating)
        if rating % 10 == 0 { try await store.checkpoint() }
      }
      return rating
    }
    for _ in 0..<Sampling.count(8, full: 200) {
      let run = try await larder("query", "--json", "--select", "rating", file.path, "spots")
      let ratings = run.output.split(separator: "\n").compactMap { $0.firstMatch(of: /"rating":([0-9]+)/)?.1 }
      #expect(run.code == 0 && ratings.count == 2 && ratings.first == ratings.last, "\(run.output)\(run.errors)")
      let verdict = try await larder("verify", file.path)
      #expect(verdict.code == 0, "\(verdict.output)")
    }
    writer.cancel()
    let result = await writer.result
    // A save that the end of the test cancels is refused; no other is.
    if case .failure(let error) = result { #expect((error as? RepositoryError)?.code == .cancelled) }
    let rating = try #require(await spots.find(by: "a")).rating
    #expect(rating > 0)
    try await store.close()
    #expect(try await larder("get", file.path, "spots", "a").output.contains("\"rating\":\(rating)"))
  }

  @Test func `a backup beside a shared store that is folded is sound`() async throws {
    let workspace = try Workspace()
    let path = try await workspace.store(.sqliteFile)
    let file = try StoreFile(path: path)
    // Each time the store is closed there is no log for a moment.
    let writer = Task {
      while !Task.isCancelled {
        let store = try await Store.open(file.backend, options: StoreOptions(access: .shared, durability: .buffered))
        let spots = try await store.repository(RepositorySchema<Spot>("spots"))
        for rating in 0..<5 { try await spots.update("brest") { $0.rating = rating } }
        try await store.checkpoint()
        try await store.close()
      }
    }
    for number in 0..<Sampling.count(12, full: 200) {
      let copy = workspace.path("copy-\(number).sqlite")
      let run = try await larder("backup", path, "--to", copy)
      #expect(run.code == 0, "\(run)")
    }
    writer.cancel()
    if case .failure(let error) = await writer.result { #expect((error as? RepositoryError)?.code == .cancelled) }
    #expect(try await larder("verify", workspace.path("copy-0.sqlite"), path).code == 0)
  }
}
