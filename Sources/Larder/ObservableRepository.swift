/// A repository whose contents can also be followed: what a view model with live results needs.
///
/// `LocalRepository` conforms, and so can a test's own. ``LiveQuery`` follows any of them:
///
/// ```swift
/// @MainActor final class BestSpots {
///   let best: LiveQuery<Spot>
///   init(_ spots: some ObservableRepository<Spot>) {
///     best = LiveQuery(spots, Query().sorted(by: \.rating, .reverse).limit(20))
///   }
/// }
/// ```
///
/// `LarderTesting` has `ScriptedSequence`, which gives the results that a test tells it to.
public protocol ObservableRepository<Item>: Repository {
  /// The results of a query over time; its iterators throw `.unsupported` for a query that cannot be answered.
  associatedtype Results: AsyncSequence<[Item], RepositoryError> & Sendable
  /// The committed changes over time.
  associatedtype Changes: AsyncSequence<ChangeSet<Item>, RepositoryError> & Sendable

  /// Returns the results of a query: the current ones first, then the newest ones whenever they differ.
  func results(of query: Query<Item>) -> Results

  /// Returns what is committed from now on, or after a revision, in the order of commits.
  func changes(since revision: Revision?) -> Changes
}

extension LocalRepository: ObservableRepository {}
