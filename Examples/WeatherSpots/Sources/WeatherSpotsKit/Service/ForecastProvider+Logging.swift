import Foundation
import Logging

// What is logged of a request: the kind of data, the duration and the outcome, and nothing of the place or the key.

extension ForecastProvider {
  /// Asks for the kinds of data of a place, and logs the request.
  func loggedAvailability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset> {
    let start = ContinuousClock.now
    do throws(ProviderError) {
      let found = try await availability(at: place)
      log("availability", start, "\(found.count) kinds")
      return found
    } catch {
      log("availability", start, error.kind)
      throw error
    }
  }

  /// Fetches several places, and logs the request.
  func loggedFetch(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    let start = ContinuousClock.now
    let answers = await fetch(requests)
    let kinds = WeatherDataset.allCases.filter(requests.first?.datasets.contains ?? { _ in false }).map(\.rawValue).joined(separator: "+")
    let failures = answers.compactMap { $0.failureOfAll?.kind }
    let outcome = failures.count == answers.count ? failures.first ?? "answered" : "answered, \(failures.count) places failed"
    log(kinds, start, failures.isEmpty ? "answered" : outcome, places: requests.count)
    return answers
  }

  private func log(_ kinds: String, _ start: ContinuousClock.Instant, _ outcome: String, places: Int = 1) {
    let milliseconds = Int(start.duration(to: .now) / .milliseconds(1))
    Logger(label: "provider").debug(
      "request",
      metadata: [
        "provider": "\(name)", "kinds": "\(kinds)", "places": "\(places)", "outcome": "\(outcome)", "ms": "\(milliseconds)",
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
    case .mismatched: "mismatched"
    case .misconfigured: "misconfigured"
    case .notAsked: "not asked"
    }
  }
}
