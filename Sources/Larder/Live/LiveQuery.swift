public import Observation

/// An observable result of a query, which stays current, for use in a view.
///
/// ```swift
/// struct BestSpots: View {
///   @State private var best: LiveQuery<Spot>
///
///   init(_ spots: LocalRepository<Spot>) {
///     _best = State(initialValue: LiveQuery(spots, Query().sorted(by: \.rating, .reverse).limit(20)))
///   }
///
///   var body: some View {
///     List(best.items) { spot in Text(spot.name) }
///   }
/// }
/// ```
///
/// Create a live query in the view's `init`, and hold the live query in `@State`. A live query follows its query from its `init` until it
/// is released. Set ``query`` to follow another query. A live query holds its repository, so the store stays open while the live query
/// exists.
///
/// A live query is isolated to the main actor. The main actor receives only finished results. As with ``LocalRepository/results(of:)``,
/// changes are tested and merged outside the main actor.
///
/// ## Cost
///
/// The query is run once, and again when ``query`` is set. Each later commit costs the time that ``QueryResults`` states, and none of that
/// time is spent on the main actor. The view is updated only when the result differs from the previous result.
///
/// ## When to use another type
///
/// - Use ``LocalRepository/results(of:)`` on another actor, or where no view is updated.
/// - Use ``RepositorySnapshot/fetch(_:)`` for a result that need not stay current.
/// - Use ``LocalRepository/changes(since:)`` to receive every change with its old value.
///
/// ## Avoid
///
/// - Do not create a live query in `body`. A query in `body` would start again with every redraw of the view.
/// - Do not follow a large collection without a limit. All results of the query would be kept in memory.
/// - Do not ignore ``error``. If you ignore ``error``, a query that cannot be answered looks like a query without results.
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
  /// The newest results of the query.
  ///
  /// The items are empty until the first results arrive. After you set ``query``, the items are the results of the earlier query until the
  /// first results of the new query arrive.
  public private(set) var items: [Item] = []
  /// True until the first results of the query arrive.
  public private(set) var isLoading = true
  /// Error that ended the live query, or `nil` while no error has occurred.
  ///
  /// The code is `.unsupported` for a query that cannot be answered, `.decodingFailed` for a ``Query/strict()`` query, or `.closed`.
  public private(set) var error: RepositoryError?

  /// Query whose results are shown, which you can replace at any time.
  public var query: Query<Item> {
    didSet { follow() }
  }

  @ObservationIgnored private let repository: any ObservableRepository<Item>
  @ObservationIgnored private var task: Task<Void, Never>?

  /// Begins to follow a query, which by default matches all records.
  public init(_ repository: some ObservableRepository<Item>, _ query: Query<Item> = Query()) {
    self.repository = repository
    self.query = query
    follow()
  }

  deinit { task?.cancel() }

  private func follow() {
    task?.cancel()
    // `isLoading` and `error` are assigned only if their values change, because assigning an equal value would also update the views that
    // read them.
    if !isLoading { isLoading = true }
    if error != nil { error = nil }
    let results = repository.results(of: query)
    // The task holds the live query weakly, because a task with a strong reference would prevent the `deinit` that cancels the task.
    task = Task { [weak self] in
      var failure = RepositoryError.storeClosed
      do throws(RepositoryError) {
        for try await items in results {
          // If `query` was replaced while the result was computed, the task is cancelled, and the result belongs to the earlier query.
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
