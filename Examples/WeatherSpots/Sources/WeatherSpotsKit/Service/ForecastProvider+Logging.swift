import Foundation
import Logging

// The log has the kind of data, the duration and the outcome of a request. It has nothing of the place or the key.

extension ForecastProvider {
  /// Fetches the kinds of data that the provider has for a place, and logs the request.
  func loggedAvailability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset> {
    // Not the wall clock, which may be set while the request runs.
    let start = ContinuousClock.now
    do throws(ProviderError) {
      let found = try await availability(at: place)
      log("availability", start, "\(found.count) kinds")
      return found
    } catch {
      // `kind` and not the description, which may repeat the place or the key.
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
  /// Kind of the failure in two or three words, for the log.
  ///
  /// It leaves out the text of the service, which may repeat the place or the key of the request.
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
