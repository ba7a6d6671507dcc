import Foundation
import LarderTesting
import Testing

@testable import Larder

/// A repository that a preview or the initialiser of a view can make.
@Suite("A repository of samples", .timeLimit(.minutes(15))) struct PreviewingTests {
  private static let samples = [Spot("Jogashima", rating: 5), Spot("Brest"), Spot("Agadir", rating: 4)]
  private static let schema = RepositorySchema<Spot>("spots", version: 3, indexes: [.unique(\.name), .ordered(\.country, \.rating)])

  @Test func itIsReadableAtOnceAndWithoutAwait() throws {
    let spots = LocalRepository(previewing: Self.samples)
    #expect(Set(spots.snapshot.loadAll()) == Set(Self.samples))
    #expect(try spots.snapshot.find(by: Self.samples[1].id) == Self.samples[1])
    #expect(try spots.snapshot.fetch(Query().sorted(by: \.name)).map(\.name) == ["Agadir", "Brest", "Jogashima"])
    let report = spots.openReport
    #expect(report.isClean && report.isNew && report.recordCount == 3 && report.leftOut.isEmpty)
    #expect(report.collections == [.init(name: "records", recordCount: 3)])
    #expect(spots.migrationProgress.phase == .notNeeded)
    let none = LocalRepository<Spot>(previewing: [])
    #expect(none.snapshot.loadAll().isEmpty && none.openReport.isClean)
  }

  @Test func itWorksAsEveryOtherRepositoryDoes() async throws {
    let spots = LocalRepository(previewing: Self.samples, schema: Self.schema)
    #expect(try await spots.fetch(Query().where(#Predicate { $0.rating >= 4 }).sorted(by: \.name)).map(\.name) == ["Agadir", "Jogashima"])
    var live = spots.results(of: Query().sorted(by: \.name)).makeAsyncIterator()
    #expect(try await live.next()?.map(\.name) == ["Agadir", "Brest", "Jogashima"])
    let known = spots.snapshot.revision
    try await spots.save(Spot("Zarautz"))
    #expect(try await live.next()?.count == 4)
    let error = await #expect(throws: RepositoryError.self) { try await spots.save(Spot("Brest")) }
    #expect(error?.code == .uniqueViolation)
    try await spots.update(Self.samples[0].id) { $0.rating = 1 }
    try await spots.delete(Self.samples[2].id)
    var changes = spots.changes(since: known).makeAsyncIterator()
    #expect(try await changes.next()?.changes.count == 3)
    #expect(try await spots.count() == 3)
    #expect(try await spots.transaction { try $0.loadAll(in: spots).count } == 3)
    #expect(spots.revision(of: Self.samples[1].id) == known)
    try await spots.close()
    #expect(await code { try await spots.save(Spot("late")) } == .closed)
  }

  @Test func aSampleThatCannotBeStoredIsLeftOutAndNamed() {
    let samples = [Measurement(id: 1, value: 1), Measurement(id: 2, value: .nan), Measurement(id: 3, value: 3)]
    let repository = LocalRepository(previewing: samples)
    #expect(repository.snapshot.loadAll().map(\.id) == [1, 3])
    let report = repository.openReport
    #expect(!report.isClean && report.leftOut.map(\.code) == [.encodingFailed])
    #expect(report.leftOut.first?.message.hasPrefix("sample 2 of 3 was left out: ") == true)
    #expect(report.leftOut.first?.keyHash != nil && report.recordCount == 2)
  }

  @Test func aSchemaThatCannotBeStoredLeavesEverySampleOutAndTrapsNever() async throws {
    let schemas: [RepositorySchema<Spot>] = [
      .init("no name!"), .init("spots", version: 0), .init("spots", version: 3, migrations: [.init(from: 1) { _ in }]),
      .init("spots", renamedFrom: "spots"),
    ]
    for schema in schemas {
      let spots = LocalRepository(previewing: Self.samples, schema: schema)
      #expect(spots.snapshot.count == 0 && spots.openReport.leftOut.map(\.code) == [.unsupported] && !spots.openReport.isClean)
      try await spots.save(Self.samples[0])
      #expect(try await spots.count() == 1)
    }
  }

  @Test func ofTwoSamplesWithOneIdTheLastHoldsAndEqualOnesAreReported() async throws {
    let id = UUID()
    let twice = LocalRepository(previewing: [Spot("first", id: id), Spot("second", id: id)])
    #expect(twice.snapshot.loadAll().map(\.name) == ["second"] && twice.openReport.isClean)
    let equal = LocalRepository(previewing: [Spot("same"), Spot("same")], schema: Self.schema)
    #expect(equal.openReport.duplicates.count == 1 && !equal.openReport.isClean && equal.snapshot.count == 2)
  }
}
