public import Larder

/// Asynchronous sequence whose elements a test sends one by one, for the live results or the changes of a test double of a repository.
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
/// The sequence buffers elements until they are read. Give the sequence one reader at a time: all iterators take from the same buffer, so
/// an iterator goes on where another one has stopped.
public struct ScriptedSequence<Element: Sendable>: AsyncSequence, Sendable {
  /// Error with which ``finish(throwing:)`` can end the sequence.
  public typealias Failure = RepositoryError

  private let stream: AsyncThrowingStream<Element, any Error>
  private let continuation: AsyncThrowingStream<Element, any Error>.Continuation

  /// Makes a sequence that begins with these elements, and continues with those that you send.
  public init(_ elements: [Element] = []) {
    // The buffer of the stream is unbounded by default, so the sequence loses no element if its reader is slow.
    (stream, continuation) = AsyncThrowingStream.makeStream()
    for element in elements { continuation.yield(element) }
  }

  /// Sends an element to the reader.
  ///
  /// After ``finish(throwing:)``, `send(_:)` does nothing.
  public func send(_ element: Element) { continuation.yield(element) }

  /// Ends the sequence after the elements that were sent, with an error if you give one.
  public func finish(throwing error: RepositoryError? = nil) { continuation.finish(throwing: error) }

  /// Makes an iterator over the elements that were not read yet.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(stream.makeAsyncIterator()) }

  /// Iterator over the elements of a ``ScriptedSequence``.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// Error with which the sequence can end.
    public typealias Failure = RepositoryError

    private var inner: AsyncThrowingStream<Element, any Error>.AsyncIterator

    init(_ inner: AsyncThrowingStream<Element, any Error>.AsyncIterator) { self.inner = inner }

    /// Waits for the next element, and returns `nil` at the end or when the task is cancelled.
    ///
    /// - Throws: The error that ``ScriptedSequence/finish(throwing:)`` was given.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws(RepositoryError) -> Element? {
      do {
        return try await inner.next(isolation: actor)
      } catch let error as RepositoryError {
        throw error
      } catch {
        // `finish` takes only a `RepositoryError`, so no other error arrives. The stream's errors are untyped, so Swift needs this case.
        throw RepositoryError(.inputOutput, "expected an error of the script, found another one", underlying: error)
      }
    }
  }
}
