public import Larder

/// Elements that a test hands out one by one: the live results or the changes of a repository of its own.
///
/// ```swift
/// nonisolated struct ScriptedSpots: ObservableRepository {
///   let script = ScriptedSequence<[Spot]>()
///   func results(of query: Query<Spot>) -> ScriptedSequence<[Spot]> { script }
///   …
/// }
/// spots.script.send([pier])                             // the view model shows it
/// spots.script.finish(throwing: RepositoryError(.closed))  // and now its error
/// ```
///
/// An element that is sent waits until it is read. The sequence has one reader, and an iterator goes on where another one has stopped.
public struct ScriptedSequence<Element: Sendable>: AsyncSequence, Sendable {
  /// The error that ``finish(throwing:)`` can end it with.
  public typealias Failure = RepositoryError

  private let stream: AsyncThrowingStream<Element, any Error>
  private let continuation: AsyncThrowingStream<Element, any Error>.Continuation

  /// Makes a sequence of these elements, which goes on with what is sent.
  public init(_ elements: [Element] = []) {
    (stream, continuation) = AsyncThrowingStream.makeStream()
    for element in elements { continuation.yield(element) }
  }

  /// Hands out one more element; does nothing after the end.
  public func send(_ element: Element) { continuation.yield(element) }

  /// Ends the sequence behind what was sent, with an error if one is given.
  public func finish(throwing error: RepositoryError? = nil) { continuation.finish(throwing: error) }

  /// Makes an iterator of what was not read yet.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(stream.makeAsyncIterator()) }

  /// An iterator that gives the elements to the reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// The error that the sequence can end with.
    public typealias Failure = RepositoryError

    private var inner: AsyncThrowingStream<Element, any Error>.AsyncIterator

    init(_ inner: AsyncThrowingStream<Element, any Error>.AsyncIterator) { self.inner = inner }

    /// Returns the next element, as soon as it was sent; `nil` at the end, and when the task is cancelled.
    ///
    /// - Throws: the error that the sequence was finished with.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws(RepositoryError) -> Element? {
      do {
        return try await inner.next(isolation: actor)
      } catch let error as RepositoryError {
        throw error
      } catch {
        throw RepositoryError(.inputOutput, "expected an error of the script, found another one", underlying: error)
      }
    }
  }
}
