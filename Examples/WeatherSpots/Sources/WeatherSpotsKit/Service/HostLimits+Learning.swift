import Larder

extension HostLimits {
  /// Runs a request within the limits; one of which nothing is learnt leaves the breaker as it was, as one that is cancelled does.
  ///
  /// A breaker takes every error that does not count against it for a success, and would close after a probe that was never sent.
  ///
  /// - Throws: What running a request within limits throws, and what the request throws.
  func learning<Result>(weight: Double = 1, _ request: () async throws -> Result) async throws -> Result {
    var unlearnt: ProviderError?
    do {
      return try await run(weight: weight) {
        do { return try await request() } catch let error as ProviderError where error.teachesNothing {
          unlearnt = error
          throw CancellationError()
        }
      }
    } catch { throw unlearnt ?? error }
  }
}

/// A source within the limits of its host, whose breaker learns only from requests that were made.
struct LearningSource<Source: RemoteSource>: RemoteSource {
  let source: Source
  let limits: HostLimits

  func fetch(_ key: Source.Key, validator: String?) async throws -> Fetched<Source.Value> {
    try await limits.learning { try await source.fetch(key, validator: validator) }
  }
}
