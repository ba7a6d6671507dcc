// Gathering/ makes one call of the places that are asked for at the same moment; `forecast --all` opts into it, and nobody else.
// Invariant: whoever asks gets what it would have got alone. Between RequestCombiner, which asks for one place, and a provider.

import Foundation
import Larder
import Logging
import Synchronization

/// A provider that can answer for several places in one call.
public protocol SeveralPlacesProvider: ForecastProvider {
  /// Asks for several places; all want the same kinds of data and the same days.
  ///
  /// - Returns: One answer for each request, in their order.
  func fetch(_ requests: [ProviderRequest]) async -> [ProviderAnswer]
}

extension OpenMeteoProvider: SeveralPlacesProvider {}

/// Asks for the places that wait in one call, up to a number of them.
///
/// A few calls run at a time, whatever they hold, as requests otherwise do. What comes while all of them run waits, and goes with the
/// next one that is free: one call for those of the same service, kinds of data and days. So nothing waits for company, and the more
/// there is to ask the fewer calls it takes.
///
/// A call for several that fails says nothing of each: they are asked for again one by one, and with them all that the service is still
/// to be asked. After as many failures in a row as open a breaker, or when the service asks for more than half a minute, what waits for
/// it fails without being asked, as behind a breaker. Quotas count places, so they are the caller's; what is asked again here is charged
/// to ``ProviderLimits`` once more.
public final class GatheringProvider: ForecastProvider {
  /// How many places one call asks for at most: the service takes a thousand; of these the URL has some 2 kB and the answer some 700.
  public static let placesPerCall = 25
  /// How many failures in a row of a service are enough: what a `CircuitBreaker` takes.
  static let failureLimit = 5

  private let provider: any SeveralPlacesProvider
  private let limits: ProviderLimits
  private let callsAtATime: Int
  private let placesPerCall: Int
  private let queue = Mutex(GatheringQueue())
  private let logger = Logger(label: "provider")

  /// Makes a provider of another one.
  ///
  /// - Parameters:
  ///   - provider: Who is asked.
  ///   - limits: What a request that is made again is charged to. Who asks this provider must not limit how many do so at a time.
  ///   - callsAtATime: How many calls run at a time.
  ///   - placesPerCall: How many places one call asks for at most.
  public init(
    _ provider: any SeveralPlacesProvider, limits: ProviderLimits, callsAtATime: Int = 4,
    placesPerCall: Int = GatheringProvider.placesPerCall
  ) {
    self.provider = provider
    self.limits = limits
    self.callsAtATime = max(callsAtATime, 1)
    self.placesPerCall = max(placesPerCall, 1)
  }

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
  /// As the other's, for one place.
  public func weight(of request: ProviderRequest) -> Double { provider.weight(of: request) }
  /// As the other's.
  public func availability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset> {
    try await provider.availability(at: place)
  }

  /// Asks, together with others.
  ///
  /// Whoever is cancelled leaves at once; a call that nobody waits for any more is cancelled.
  public func fetch(_ request: ProviderRequest) async -> ProviderAnswer {
    let id = queue.withLock { $0.makeID() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let service = request.datasets.first.flatMap(provider.service(of:)) ?? ""
        let waiter = GatheringQueue.Waiter(id: id, request: request, service: service, continuation: continuation)
        let isIn = queue.withLock { queue in
          // A cancellation before this point is seen here; a later one finds the waiter.
          guard !Task.isCancelled else { return false }
          queue.waiting.append(waiter)
          return true
        }
        if isIn { startCalls() } else { waiter.fail(.network(.cancelled)) }
      }
    } onCancel: {
      let (waiter, abandoned) = queue.withLock { $0.remove(id) }
      abandoned?.cancel()
      waiter?.fail(.network(.cancelled))
    }
  }

  /// How many wait for a call, and how many are in one: for tests.
  var counts: (waiting: Int, asked: Int) { queue.withLock { ($0.waiting.count, $0.calls.values.reduce(0) { $0 + $1.members.count }) } }

  /// Starts calls while one more may run and somebody waits.
  private func startCalls() {
    while let (id, members) = queue.withLock({ $0.nextCall(atATime: callsAtATime, places: placesPerCall) }) {
      let task = Task { await run(id, members) }
      // Everybody may have left before there was a task to cancel.
      if queue.withLock({ $0.begin(id, task) }) { task.cancel() }
    }
  }

  private func run(_ id: Int, _ members: [GatheringQueue.Waiter]) async {
    var answers: [ProviderAnswer]
    do {
      if let member = members.first, member.isAgain { try await limits.charge(provider.weight(of: member.request)) }
      answers = await provider.fetch(members.map(\.request))
    } catch {
      // The quota does not allow it again: then it has failed with the others.
      answers = members.map { ProviderAnswer(failure: $0.failure ?? .network(.cancelled), of: $0.request.datasets) }
    }
    if answers.count != members.count {
      answers = members.map { ProviderAnswer(failure: .malformed("\(answers.count) places"), of: $0.request.datasets) }
    }
    if members.count > 1 { logger.debug("call", metadata: ["provider": "\(provider.name)", "places": "\(members.count)"]) }
    let done = queue.withLock { $0.end(id, members, answers, failureLimit: Self.failureLimit) }
    for (waiter, answer) in done { waiter.continuation.resume(returning: answer) }
    startCalls()
  }
}

extension ProviderError {
  /// Whether a call for several places that failed so may do better for one of them.
  ///
  /// A provider asks by itself again for each place that it was refused. A limit of requests is no reason to make more of them, and
  /// neither is a service that asks for time.
  var mayBeOfOnePlace: Bool {
    switch self {
    case .network(.cancelled), .rateLimited, .serviceFailed(_, .some), .notAsked: false
    case .network, .serviceFailed, .notJSON, .interrupted: true
    case .rejected, .unauthorized, .noCoverage, .unsupported, .unexpectedUnit, .malformed, .misconfigured: false
    }
  }
}
