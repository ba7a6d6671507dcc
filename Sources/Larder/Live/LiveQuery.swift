public import Observation

/// An observable result of a query for a view, which stays current.
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
/// Create a live query in the view's `init`, and hold it in `@State`. A live query begins to follow its query at once, and stops when it is
/// released. Set ``query`` to follow another query. A live query holds its repository, so the store stays open while the live query exists.
///
/// Use a live query on the main actor, to which it belongs. The main actor receives only finished results. Changes are tested and merged on
/// another actor, as by ``LocalRepository/results(of:)``.
///
/// ## Cost
///
/// The query is run once, and again when ``query`` is set. After that each commit costs the time that ``QueryResults`` states, and none of
/// this work runs on the main actor. The view is updated only when the result differs.
///
/// ## When to use another type
///
/// - Use ``LocalRepository/results(of:)`` on another actor, or where no view is updated.
/// - Use ``RepositorySnapshot/fetch(_:)`` for a result that need not stay current.
/// - Use ``LocalRepository/changes(since:)`` to receive every change with its old value.
///
/// ## Avoid
///
/// - Do not create a live query in `body`. The query would start again with every redraw.
/// - Do not follow a large collection without a limit. All results of the query would be kept in memory.
/// - Do not ignore ``error``. If you ignore ``error``, a query that cannot be answered looks like a query with an empty result.
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
  /// Newest results of the query.
  ///
  /// The items are empty until the first results arrive. After ``query`` was set, the items are the results of the earlier query until the
  /// first results of the new query arrive.
  public private(set) var items: [Item] = []
  /// True until the first results of the query arrive.
  public private(set) var isLoading = true
  /// Error that ended the results of the query, or `nil`.
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
    // Here and below, a property is assigned only if it changes, because an equal assignment would also update the views that read it.
    if !isLoading { isLoading = true }
    if error != nil { error = nil }
    let results = repository.results(of: query)
    // Weak: `deinit` cancels the task, and a task that held this object would prevent its `deinit`.
    task = Task { [weak self] in
      var failure = RepositoryError.storeClosed
      do throws(RepositoryError) {
        for try await items in results {
          // If the query was replaced while this result was on its way, the task is cancelled and the result belongs to the earlier query.
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
