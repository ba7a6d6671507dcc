import Foundation
import Larder

/// One service of a provider, as a source that fetches several places in one request.
///
/// The key is the request for one place, the value the answer for it. Larder gathers the keys that wait into requests, retries each by
/// itself, and divides a request that failed because of one place.
struct ServiceSource: BatchRemoteSource {
  let provider: any ForecastProvider
  /// The number of places of one request.
  let maxKeysPerRequest: Int

  func canShareRequest(_ key: ProviderRequest, _ other: ProviderRequest) -> Bool {
    key.datasets == other.datasets && key.day == other.day && key.days == other.days
  }

  /// Returns the weight of all places: quotas count them one by one.
  func requestWeight(of keys: [ProviderRequest]) -> Double { keys.reduce(0) { $0 + provider.weight(of: $1) } }

  func fetch(
    _ requests: [FetchRequest<ProviderRequest>]
  ) async throws -> [ProviderRequest: Result<Fetched<ProviderAnswer>, any Error>] {
    let keys = requests.map(\.key)
    let answers = await provider.loggedFetch(keys)
    guard answers.count == keys.count else { throw ProviderError.mismatched("\(answers.count) places instead of \(keys.count)") }
    let failures = answers.map(\.failureOfAll)
    // The same failure of all places is one of the request, which may be divided; others are of their places.
    if let failure = failures[0], failures.allSatisfy({ $0 == failure }) { throw failure.asCancellation }
    let results = zip(answers, failures).map { answer, failure -> Result<Fetched<ProviderAnswer>, any Error> in
      failure.map { .failure($0.asCancellation) } ?? .success(.value(answer))
    }
    return Dictionary(zip(keys, results)) { first, _ in first }
  }
}

extension ProviderError {
  /// The error as Larder knows it: a cancellation is no failure of the host.
  var asCancellation: any Error { if case .network(.cancelled) = self { CancellationError() } else { self } }
}

/// The services of a provider within their limits, each a ``ServiceSource`` that gathers the places that wait.
struct ServiceSources: Sendable {
  private let sources: [String: GatheredSource<ProviderRequest, ProviderAnswer>]
  private let provider: any ForecastProvider

  /// Makes the sources of all services.
  ///
  /// - Parameters:
  ///   - provider: The provider.
  ///   - limits: The limits that its services share.
  ///   - placesPerRequest: The number of places of one request.
  init(_ provider: any ForecastProvider, _ limits: ProviderLimits, placesPerRequest: Int) {
    self.provider = provider
    let source = ServiceSource(provider: provider, maxKeysPerRequest: placesPerRequest)
    let services = Set(WeatherDataset.allCases.compactMap(provider.service(of:)))
    sources = Dictionary(services.map { ($0, source.limited(by: limits.of($0))) }) { first, _ in first }
  }

  /// Fetches kinds of data that one service has.
  ///
  /// - Throws: The failure of the request, or of everything that was requested for this place.
  func fetch(_ request: ProviderRequest) async throws -> ProviderAnswer {
    guard let service = request.datasets.first.flatMap(provider.service(of:)), let source = sources[service] else {
      throw ProviderError.unsupported
    }
    guard case .value(let answer, _, _) = try await source.fetch(request, validator: nil) else {
      throw ProviderError.malformed("an answer without data")
    }
    return answer
  }
}
