import Testing

@testable import Larder

/// How far the readers of changes have been told, beside writes that they are told of later.
struct ToldRevisionTests {
  @Test func changesSayUpToWhichCommitTheyHaveBeenTold() async throws {
    let store = try await Store.open(InMemoryBackend())
    let values = try await store.repository(RepositorySchema<Measurement>("values"))
    let others = try await store.repository(RepositorySchema<Measurement>("others"))
    let begin = try await values.save(Measurement(id: 0, value: 0))
    let changes = values.changes()
    var reader = changes.makeAsyncIterator()
    #expect(changes.revision == begin && reader.revision == begin)
    let first = try await values.save(Measurement(id: 1, value: 1))
    // A write begins when everybody has been told of the one before.
    let second = try await others.save(Measurement(id: 1, value: 1))
    #expect(changes.revision >= first && reader.revision == begin)
    let set = try await reader.next()
    #expect(set?.revision == first && reader.revision >= first)
    let third = try await others.save(Measurement(id: 2, value: 1))
    #expect(changes.revision >= second && reader.revision >= second && reader.revision <= third)
    var resumed = values.changes(since: begin).makeAsyncIterator()
    #expect(resumed.revision == begin)
    _ = try await resumed.next()
    #expect(resumed.revision == third)
    try await store.close()
    let closed = values.changes()
    #expect(closed.revision == third)
  }
}
