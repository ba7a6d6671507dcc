import Foundation
import Larder

/// The requests for kinds of data that are asked for together, combined into one for each service.
///
/// Every kind of data has a cache of its own, and each cache fetches for itself. What is asked for together is announced here first; the
/// fetch of the first kind then asks for all of them, and the others find the answer there. So a forecast is one request to its service.
actor RequestCombiner {
  /// Some kinds of data of one service, place and day, asked for together.
  final class Group: Sendable {
    let request: ProviderRequest
    fileprivate init(_ request: ProviderRequest) { self.request = request }
  }

  private struct State {
    let group: Group
    var holders = 1
    /// The number of attempts for each kind: the second attempt of one kind shares its request with the second of another.
    var attempts: [WeatherDataset: Int] = [:]
    var answers: [SharedAnswer] = []
  }

  private let fetch: @Sendable (ProviderRequest) async throws -> ProviderAnswer
  private var states: [State] = []

  /// Makes a combiner.
  ///
  /// - Parameter fetch: Fetches the kinds of data of one service and place.
  init(_ fetch: @escaping @Sendable (ProviderRequest) async throws -> ProviderAnswer) { self.fetch = fetch }

  /// Announces kinds of data that one service has; ``leave(_:)`` takes it back.
  func join(_ request: ProviderRequest) -> Group {
    if let index = states.firstIndex(where: { $0.group.request.includes(request) && !$0.answers.contains(where: \.isDone) }) {
      states[index].holders += 1
      return states[index].group
    }
    let group = Group(request)
    states.append(State(group: group))
    return group
  }

  /// Ends an announcement.
  ///
  /// What is fetched after it is asked for alone.
  func leave(_ group: Group) {
    guard let index = states.firstIndex(where: { $0.group === group }) else { return }
    states[index].holders -= 1
    if states[index].holders == 0 { states.remove(at: index) }
  }

  /// Returns the answer to a request for one kind of data, shared with those that were announced together with it.
  func answer(_ request: ProviderRequest, _ dataset: WeatherDataset) async throws -> ProviderAnswer {
    guard let index = states.firstIndex(where: { $0.group.request.includes(request) }) else {
      return try await fetch(request)
    }
    let attempt = states[index].attempts[dataset, default: 0]
    states[index].attempts[dataset] = attempt + 1
    if attempt >= states[index].answers.count {
      let group = states[index].group
      states[index].answers.append(SharedAnswer { [fetch] in try await fetch(group.request) })
    }
    return try await states[index].answers[min(attempt, states[index].answers.count - 1)].value()
  }
}

extension ProviderRequest {
  /// Returns whether an answer to this request answers another one too.
  fileprivate func includes(_ other: ProviderRequest) -> Bool {
    let needsDays = other.datasets != [.current] && other.datasets != [.alerts]
    return place == other.place && datasets.isSuperset(of: other.datasets) && (!needsDays || (day == other.day && days == other.days))
  }
}
