import Larder
import NIOCore
import WeatherSpotsKit

/// Stream of the changes of spots since a revision, as server-sent events.
struct SpotEvents: AsyncSequence, Sendable {
  typealias Element = ByteBuffer

  private let spots: LocalRepository<Spot>
  private let changes: RepositoryChanges<Spot>
  private let rows: RowCache
  private let gathering: Duration

  /// Creates the stream of the changes after a revision, or from now on without one.
  ///
  /// - Parameter gathering: The time after an event within which all changes become one event: a burst of saves wakes a stream once.
  init(spots: LocalRepository<Spot>, since: Revision?, rows: RowCache, gathering: Duration) {
    (self.spots, self.rows, self.gathering) = (spots, rows, gathering)
    changes = spots.changes(since: since)
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(events: self, changes: changes.makeAsyncIterator()) }

  /// Iterator over the events of one stream.
  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let events: SpotEvents
    fileprivate var changes: RepositoryChanges<Spot>.AsyncIterator
    private var hasTold = false

    fileprivate init(events: SpotEvents, changes: RepositoryChanges<Spot>.AsyncIterator) { (self.events, self.changes) = (events, changes) }

    mutating func next() async throws -> ByteBuffer? {
      // The first event is not delayed. Later ones are: with 50 saves a second, 200 streams wake 6 times a second.
      if hasTold { try await Task.sleep(for: events.gathering) }
      let set: ChangeSet<Spot>?
      // `unsupported` means that the store no longer has the changes since this revision, or never had the revision.
      do { set = try await changes.next() } catch RepositoryError.Code.unsupported {
        // Started before the revision is read, so that no commit falls between the two.
        changes = events.spots.changes().makeAsyncIterator()
        return EventText.reset(at: events.spots.snapshot.revision)
      } catch { throw error }
      guard let set else { return nil }
      hasTold = true
      return try EventText.changes(set, events.rows)
    }
  }
}
