import Larder
import NIOCore
import WeatherSpotsKit

/// The changes of spots since a revision, as events.
struct SpotEvents: AsyncSequence, Sendable {
  typealias Element = ByteBuffer

  private let spots: LocalRepository<Spot>
  private let changes: RepositoryChanges<Spot>
  private let rows: RowCache
  private let gathering: Duration

  /// Begins now, or at a revision.
  ///
  /// - Parameter gathering: The time after an event within which all changes become one event: many saves wake no stream for each.
  init(spots: LocalRepository<Spot>, since: Revision?, rows: RowCache, gathering: Duration) {
    (self.spots, self.rows, self.gathering) = (spots, rows, gathering)
    changes = spots.changes(since: since)
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(events: self, changes: changes.makeAsyncIterator()) }

  /// An iterator over the events of one stream.
  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let events: SpotEvents
    fileprivate var changes: RepositoryChanges<Spot>.AsyncIterator
    private var hasTold = false

    fileprivate init(events: SpotEvents, changes: RepositoryChanges<Spot>.AsyncIterator) { (self.events, self.changes) = (events, changes) }

    mutating func next() async throws -> ByteBuffer? {
      if hasTold { try await Task.sleep(for: events.gathering) }
      let set: ChangeSet<Spot>?
      do { set = try await changes.next() } catch RepositoryError.Code.unsupported {
        // Begun before the revision is read, so that nothing falls between the two.
        changes = events.spots.changes().makeAsyncIterator()
        return EventText.reset(at: events.spots.snapshot.revision)
      } catch { throw error }
      guard let set else { return nil }
      hasTold = true
      return try EventText.changes(set, events.rows)
    }
  }
}
