import Foundation
public import Larder

/// The answer of a provider about the warnings at a place.
public enum AlertAnswer: Sendable {
  /// The warnings in force; none is an answer too.
  case alerts([WeatherAlert])
  /// The provider has no warnings for this place.
  case notOffered
}

/// A source of warnings: a provider, or a script in tests.
public protocol AlertSource: Sendable {
  /// Asks once; never answers from what is stored, so that nothing old is taken for what is in force.
  func alerts(in cluster: SpotCluster) async throws -> AlertAnswer
}

/// The warnings of a forecast provider, asked for the centre of the cluster within the provider's limits: one request for each question.
public struct ProviderAlerts: AlertSource {
  private let provider: any ForecastProvider
  private let limits: ProviderLimits
  private let service: String
  private let clock: any WallClock

  /// Makes a source.
  ///
  /// - Throws: `.unsupported` when the provider has no warnings anywhere.
  public init(_ provider: any ForecastProvider, limits: ProviderLimits, clock: any WallClock) throws(ProviderError) {
    guard let service = provider.service(of: .alerts) else { throw .unsupported }
    self.provider = provider
    self.limits = limits
    self.service = service
    self.clock = clock
  }

  /// Asks the provider.
  public func alerts(in cluster: SpotCluster) async throws -> AlertAnswer {
    let place = ForecastPlace(
      provider: provider.name, cluster.center, timezone: cluster.timezone, country: provider.needsCountry ? cluster.id.country : "")
    let request = ProviderRequest(place, from: LocalDay(containing: clock.now, in: place.zone), days: 1, [.alerts])
    let provider = provider
    return try await limits.of(service).run(weight: provider.weight(of: request)) {
      switch await provider.loggedFetch([request]).first?.alerts {
      case .data(let answer, _): return .alerts(answer.alerts)
      case .noCoverage, .failure(.unsupported), .failure(.noCoverage): return .notOffered
      case .failure(.network(.cancelled)): throw CancellationError()
      case .failure(let error): throw error
      case nil: throw ProviderError.malformed("an answer without alerts")
      }
    }
  }
}
