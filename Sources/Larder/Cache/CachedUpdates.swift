/// The value of one key now, and whenever it or its state differs.
public struct CachedUpdates<Value: Sendable>: AsyncSequence, Sendable {
  /// The value with its age and state.
  public typealias Element = Cached<Value>
  /// Nothing: a value that cannot be read is none.
  public typealias Failure = Never

  /// Begins with the current value.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator() }

  /// Gives one answer after the other to one reader.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// The value with its age and state.
    public typealias Element = Cached<Value>
    /// Nothing.
    public typealias Failure = Never
    /// The next answer.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Cached<Value>? { nil }
  }
}
