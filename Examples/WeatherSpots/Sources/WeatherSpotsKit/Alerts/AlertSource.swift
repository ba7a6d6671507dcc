import Foundation
public import Larder

/// A provider's answer about the warnings at a place.
public enum AlertAnswer: Sendable {
  /// Warnings in force.
  ///
  /// An empty array means that there are none.
  case alerts([WeatherAlert])
  /// The provider offers no warnings for this place.
  case notOffered
}

/// A source of weather warnings: a forecast provider, or a script in tests.
public protocol AlertSource: Sendable {
  /// Fetches the warnings in a cluster with one call, never from a cache, whose warnings might have expired or been revised.
  func alerts(in cluster: SpotCluster) async throws -> AlertAnswer
}

/// A source that fetches a forecast provider's warnings at the centre of a cluster, within the provider's rate limits.
///
/// Each call sends one request.
public struct ProviderAlerts: AlertSource {
  private let provider: any ForecastProvider
  private let limits: ProviderLimits
  private let service: String
  private let clock: any WallClock

  /// Makes a source.
  ///
  /// - Throws: `.unsupported` if the provider has no warnings anywhere.
  public init(_ provider: any ForecastProvider, limits: ProviderLimits, clock: any WallClock) throws(ProviderError) {
    guard let service = provider.service(of: .alerts) else { throw .unsupported }
    self.provider = provider
    self.limits = limits
    self.service = service
    self.clock = clock
  }

  /// Fetches the warnings at the centre of the cluster from the provider.
  public func alerts(in cluster: SpotCluster) async throws -> AlertAnswer {
    let place = ForecastPlace(
      provider: provider.name, cluster.center, timezone: cluster.timezone, country: provider.needsCountry ? cluster.id.country : "")
    let request = ProviderRequest(place, from: LocalDay(containing: clock.now, in: place.zone), days: 1, [.alerts])
    let provider = provider
    return try await limits.of(service).run(weight: provider.weight(of: request)) {
      // Through the provider and not the forecast cache, whose warnings may be hours old.
      switch await provider.loggedFetch([request]).first?.alerts {
      case .data(let answer, _): return .alerts(answer.alerts)
      case .noCoverage, .failure(.unsupported), .failure(.noCoverage): return .notOffered
      // Rethrown as a cancellation, so that the pipeline ends its round instead of counting a failed call.
      case .failure(.network(.cancelled)): throw CancellationError()
      case .failure(let error): throw error
      case nil: throw ProviderError.malformed("an answer without alerts")
      }
    }
  }
}
