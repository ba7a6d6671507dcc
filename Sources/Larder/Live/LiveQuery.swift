public import Observation

/// The results of a query for a view: always current, and observable.
///
/// ```swift
/// @State private var best = LiveQuery(spots, Query().sorted(by: \.rating, .reverse).limit(20))
/// ```
///
/// It begins when it is made and is updated on the main actor, where only the ready result arrives: the query is followed elsewhere, as by
/// ``LocalRepository/results(of:)``. It stops when it goes away. It keeps its repository.
///
/// ## Cost
///
/// The query is run once, and again when ``query`` is set; after that each commit costs what ``QueryResults`` says, away from the main
/// actor. The view is updated only when the result differs.
///
/// ## Topics
///
/// ### Following a query
/// - ``init(_:_:)``
/// - ``query``
///
/// ### Showing the results
/// - ``items``
/// - ``isLoading``
/// - ``error``
@MainActor @Observable public final class LiveQuery<Item: Codable & Identifiable & Sendable>
where Item.ID: Hashable & Codable & Sendable {
  /// The newest results; empty until the first ones are there, and those of the last query until the next one has its own.
  public private(set) var items: [Item] = []
  /// Whether the first results of the query are still to come.
  public private(set) var isLoading = true
  /// The error for which there are no results, or no newer ones: `.unsupported` for a query that cannot be answered, `.decodingFailed`
  /// for a ``Query/strict()`` one, `.closed`.
  public private(set) var error: RepositoryError?

  /// The query that is followed; another one takes its place at once.
  public var query: Query<Item> {
    didSet { follow() }
  }

  @ObservationIgnored private let repository: any ObservableRepository<Item>
  @ObservationIgnored private var task: Task<Void, Never>?

  /// Begins to follow a query: all records, unless given.
  public init(_ repository: some ObservableRepository<Item>, _ query: Query<Item> = Query()) {
    self.repository = repository
    self.query = query
    follow()
  }

  deinit { task?.cancel() }

  private func follow() {
    task?.cancel()
    if !isLoading { isLoading = true }
    if error != nil { error = nil }
    let results = repository.results(of: query)
    task = Task { [weak self] in
      var failure = RepositoryError.storeClosed
      do throws(RepositoryError) {
        for try await items in results {
          if Task.isCancelled { return }
          self?.show(items)
        }
      } catch {
        failure = error
      }
      if !Task.isCancelled { self?.end(failure) }
    }
  }

  private func show(_ items: [Item]) {
    self.items = items
    if isLoading { isLoading = false }
  }

  private func end(_ failure: RepositoryError) {
    error = failure
    if isLoading { isLoading = false }
  }
}
