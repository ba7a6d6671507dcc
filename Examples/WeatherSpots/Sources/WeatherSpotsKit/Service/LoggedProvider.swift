import Foundation
import Logging

/// A provider whose requests are logged: what kind of data, how long it took and how it ended, and nothing of where or who.
public struct LoggedProvider: ForecastProvider {
  private let provider: any ForecastProvider
  private let logger = Logger(label: "provider")

  /// Makes a provider of another one.
  public init(_ provider: any ForecastProvider) { self.provider = provider }

  /// As the other's.
  public var name: String { provider.name }
  /// As the other's.
  public var storageName: String { provider.storageName }
  /// As the other's.
  public var attribution: [String] { provider.attribution }
  /// As the other's.
  public var needsCountry: Bool { provider.needsCountry }
  /// As the other's.
  public func service(of dataset: WeatherDataset) -> String? { provider.service(of: dataset) }
  /// As the other's.
  public func weight(of request: ProviderRequest) -> Double { provider.weight(of: request) }

  /// Asks for the kinds of data, and logs the request.
  public func availability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset> {
    let start = ContinuousClock.now
    do throws(ProviderError) {
      let found = try await provider.availability(at: place)
      log("availability", start, "\(found.count) kinds")
      return found
    } catch {
      log("availability", start, error.kind)
      throw error
    }
  }

  /// As the other's.
  public var placesPerRequest: Int { provider.placesPerRequest }

  /// Fetches one place, and logs the request.
  public func fetch(_ request: ProviderRequest) async -> ProviderAnswer {
    await fetch([request]).first ?? ProviderAnswer(failure: .malformed("no place"), of: request.datasets)
  }

  /// Fetches several places, and logs the request.
  public func fetch(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    let start = ContinuousClock.now
    let answers = await provider.fetch(requests)
    let kinds = WeatherDataset.allCases.filter(requests.first?.datasets.contains ?? { _ in false }).map(\.rawValue).joined(separator: "+")
    let failures = answers.compactMap { $0.failureOfAll?.kind }
    let outcome = failures.count == answers.count ? failures.first ?? "answered" : "answered, \(failures.count) places failed"
    log(kinds, start, failures.isEmpty ? "answered" : outcome, places: requests.count)
    return answers
  }

  private func log(_ kinds: String, _ start: ContinuousClock.Instant, _ outcome: String, places: Int = 1) {
    let milliseconds = Int(start.duration(to: .now) / .milliseconds(1))
    logger.debug(
      "request",
      metadata: [
        "provider": "\(provider.name)", "kinds": "\(kinds)", "places": "\(places)", "outcome": "\(outcome)", "ms": "\(milliseconds)",
      ])
  }
}

extension ProviderError {
  /// The failure without what the service said, which may repeat what it was asked.
  var kind: String {
    switch self {
    case .network(.timedOut): "timed out"
    case .network(.unreachable(_, let code)): "unreachable (\(code))"
    case .network(.tooLarge): "too large"
    case .network(.cancelled): "cancelled"
    case .rejected(let status, _): "rejected (\(status))"
    case .unauthorized: "unauthorized"
    case .noCoverage: "no coverage"
    case .unsupported: "unsupported"
    case .rateLimited: "rate limited"
    case .serviceFailed(let status, _): "failed (\(status))"
    case .notJSON(let status): "not JSON (\(status))"
    case .interrupted: "cut off"
    case .unexpectedUnit: "unexpected unit"
    case .malformed: "malformed"
    case .misconfigured: "misconfigured"
    case .notAsked: "not asked"
    }
  }
}
