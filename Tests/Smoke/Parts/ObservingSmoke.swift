import Foundation
import Larder
import LarderTesting

enum ObservingSmoke {
  static func run(_ directory: URL) async throws {
    let jars = try await LocalRepository<Jar>(inMemory: Jar.schema)
    let sequence = jars.changes()
    try expect(sequence.revision == .zero)
    var changes = sequence.makeAsyncIterator()
    let revision = try await jars.save(.plum)
    let set = try await changes.next()
    try expect(set?.revision == revision && changes.revision == revision)
    guard let change = set?.changes.first else { throw SmokeFailure(description: "expected a change") }
    try expect(change.id == 1 && change.new == .plum && change.old == nil && change.error == nil && change.key.text == "1")
    try expect(change.kind == .inserted && change.origin == .thisProcess && change.revision == revision)
    let kinds: [ChangeSet<Jar>.Change.Kind] = [.deleted, .updated, .upserted]
    let origins: [ChangeOrigin] = [.anotherProcess, .remote, .migration, .unknown]
    try expect(!kinds.contains(change.kind) && !origins.contains(change.origin))
    try await follow(jars, since: .zero)
    var results = jars.results(of: Query().sorted(by: \.label)).makeAsyncIterator()
    try await expect(results.next() == [.plum])
    try await jars.save(.fig)
    try await expect(results.next() == [.fig, .plum])
    try await show(jars)
    try await jars.close()

    let scripted = ScriptedSequence<Int>([1])
    scripted.send(2)
    scripted.finish(throwing: RepositoryError(.closed))
    var elements: [Int] = []
    do { for try await element in scripted { elements.append(element) } } catch { try expect(error.code == .closed) }
    var iterator = scripted.makeAsyncIterator()
    _ = try? await iterator.next()
    try expect(elements == [1, 2])
  }

  /// Follows by way of the protocol, as view models do.
  private static func follow(_ jars: some ObservableRepository<Jar>, since revision: Revision) async throws {
    var changes = jars.changes(since: revision).makeAsyncIterator()
    try await expect(changes.next(isolation: nil)?.changes.count == 1)
    var results = jars.results(of: Query()).makeAsyncIterator()
    try await expect(results.next(isolation: nil) == [.plum])
  }

  @MainActor private static func show(_ jars: LocalRepository<Jar>) async throws {
    let live = LiveQuery(jars, Query().limit(1))
    while live.isLoading { await Task.yield() }
    try expect(live.items.count == 1 && live.error == nil)
    live.query = Query()
    while live.items.count < 2 { await Task.yield() }
  }
}
