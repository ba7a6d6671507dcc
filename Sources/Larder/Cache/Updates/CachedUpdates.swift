/// The value of one key now, and whenever it or its state differs; see ``CachedRepository/updates(for:)``.
public struct CachedUpdates<Value: Sendable>: AsyncSequence, Sendable {
  /// The value with its age and state.
  public typealias Element = Cached<Value>
  /// No failure: a value that cannot be read is none.
  public typealias Failure = Never

  /// The answers of one reader, whatever its key, one for each call.
  typealias Answers = @Sendable () async -> Cached<Value>?

  private let makeReader: @Sendable () -> Answers

  init(_ makeReader: @escaping @Sendable () -> Answers) { self.makeReader = makeReader }

  /// Begins with the current value, if there is one that has not expired.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(answers: makeReader()) }

  /// An iterator that gives one answer after the other to one reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// The value with its age and state.
    public typealias Element = Cached<Value>
    /// No failure.
    public typealias Failure = Never

    let answers: Answers

    /// Returns the next answer, as soon as there is one; `nil` when the storage was closed, and when the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Cached<Value>? {
      await answers()
    }
  }
}
