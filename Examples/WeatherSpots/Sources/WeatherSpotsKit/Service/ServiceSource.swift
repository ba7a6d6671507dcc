import Larder

/// Remote source of one service of a provider, which fetches several places in one request.
///
/// A key is the request for one place, and its value is the answer for that place. Larder gathers waiting keys into requests, retries each
/// key on its own, and divides a request that failed because of one place.
struct ServiceSource: BatchRemoteSource {
  let provider: any ForecastProvider
  /// Number of places that one request may have.
  let maxKeysPerRequest: Int

  func canShareRequest(_ key: ProviderRequest, _ other: ProviderRequest) -> Bool {
    // One URL has one list of variables and one range of days for all of its places.
    key.datasets == other.datasets && key.day == other.day && key.days == other.days
  }

  /// Returns the sum of the weights of all places, since a provider's quota counts each place.
  func requestWeight(of keys: [ProviderRequest]) -> Double { keys.reduce(0) { $0 + provider.weight(of: $1) } }

  func fetch(
    _ requests: [FetchRequest<ProviderRequest>]
  ) async throws -> [ProviderRequest: Result<Fetched<ProviderAnswer>, any Error>] {
    let keys = requests.map(\.key)
    let answers = await provider.loggedFetch(keys)
    // Answers belong to keys by their order: with a gap, places would get the weather of others.
    guard answers.count == keys.count else { throw ProviderError.mismatched("\(answers.count) places instead of \(keys.count)") }
    let failures = answers.map(\.failureOfAll)
    // One failure of all places is thrown as a failure of the request, which Larder may divide. Other failures stay with their places.
    if let failure = failures[0], failures.allSatisfy({ $0 == failure }) { throw failure.asCancellation }
    let results = zip(answers, failures).map { answer, failure -> Result<Fetched<ProviderAnswer>, any Error> in
      failure.map { .failure($0.asCancellation) } ?? .success(.value(answer))
    }
    return Dictionary(zip(keys, results)) { first, _ in first }
  }
}

extension ProviderError {
  /// The error itself, or `CancellationError` for a cancelled request, which Larder does not count as a failure of the host.
  var asCancellation: any Error { if case .network(.cancelled) = self { CancellationError() } else { self } }
}

/// Services of a provider, each as a rate-limited ``ServiceSource`` that gathers waiting places into requests.
struct ServiceSources: Sendable {
  private let sources: [String: GatheredSource<ProviderRequest, ProviderAnswer>]
  private let provider: any ForecastProvider

  /// Creates the sources of all services.
  ///
  /// - Parameters:
  ///   - provider: Provider that sends the requests.
  ///   - limits: Limits that its services share.
  ///   - placesPerRequest: Number of places that one request may have.
  init(_ provider: any ForecastProvider, _ limits: ProviderLimits, placesPerRequest: Int) {
    self.provider = provider
    let source = ServiceSource(provider: provider, maxKeysPerRequest: placesPerRequest)
    let services = Set(WeatherDataset.allCases.compactMap(provider.service(of:)))
    sources = Dictionary(services.map { ($0, source.limited(by: limits.of($0))) }) { first, _ in first }
  }

  /// Fetches kinds of data that belong to one service.
  ///
  /// - Throws: The error of the request, or the common error of all requested kinds of this place.
  func fetch(_ request: ProviderRequest) async throws -> ProviderAnswer {
    // The first kind decides, since the requests of a call are made for each service.
    guard let service = request.datasets.first.flatMap(provider.service(of:)), let source = sources[service] else {
      throw ProviderError.unsupported
    }
    guard case .value(let answer, _, _) = try await source.fetch(request, validator: nil) else {
      throw ProviderError.malformed("an answer without data")
    }
    return answer
  }
}
