import Foundation
import Larder
import LarderTesting
import Synchronization
import Testing

@testable import WeatherSpotsKit

/// Says what a test tells it to, and remembers what it was asked.
final class ScriptedAlerts: AlertSource {
  private let answer = Mutex(Result<AlertAnswer, ProviderError>.success(.alerts([])))
  private let clusters = Mutex<[SpotCluster.ID]>([])

  var asked: [SpotCluster.ID] { clusters.withLock { $0 } }
  func say(_ alerts: [WeatherAlert]) { say(.alerts(alerts)) }
  func say(_ answer: AlertAnswer) { self.answer.withLock { $0 = .success(answer) } }
  func fail(_ error: ProviderError) { answer.withLock { $0 = .failure(error) } }

  func alerts(in cluster: SpotCluster) async throws -> AlertAnswer {
    clusters.withLock { $0.append(cluster.id) }
    return try answer.withLock { $0 }.get()
  }
}

/// Takes notices and remembers them, or does not.
final class RecordingSink: AlertSink {
  private struct State {
    var taken: [AlertDelivery] = []
    var errors: [SinkError] = []
    var refused: [AlertDelivery] = []
  }
  private let state = Mutex(State())
  let name: String
  let batchLimit: Int

  init(_ name: String = "recording", batchLimit: Int = 10) {
    self.name = name
    self.batchLimit = batchLimit
  }

  var taken: [AlertDelivery] { state.withLock { $0.taken } }
  var refused: [AlertDelivery] { state.withLock { $0.refused } }
  /// Fails the next calls, one for each error.
  func fail(_ errors: SinkError...) { state.withLock { $0.errors += errors } }

  func deliver(_ notices: [AlertDelivery]) async throws(SinkError) {
    let error: SinkError? = state.withLock { state in
      guard !state.errors.isEmpty else {
        state.taken += notices
        return nil
      }
      state.refused += notices
      return state.errors.removeFirst()
    }
    if let error { throw error }
  }
}

/// A warning in force from ten to ten in the evening.
func warning(
  _ id: String = "w1", summary: String = "Wind", issued: String = "2026-07-01T09:30:00Z", expires: String = "2026-07-01T22:00:00Z"
) throws -> WeatherAlert {
  WeatherAlert(
    id: id, summary: summary, areaName: "Finistère", source: "Météo-France", severity: "moderate", urgency: nil, certainty: nil,
    issued: try instant(issued), effective: try instant("2026-07-01T10:00:00Z"), expires: try instant(expires), onset: nil, end: nil,
    details: URL(string: "https://example.org/w1"))
}

func watcher(_ name: String, _ latitude: Double, _ longitude: Double, country: String = "FR", sink: String = "recording") throws -> Watcher
{
  Watcher(
    id: name, place: name, coordinate: try #require(Coordinate(latitude: latitude, longitude: longitude)), country: country,
    timezone: "Europe/Paris", sink: sink)
}

/// The parts of a pipeline, and a store that lives on between runs.
struct AlertBench {
  let backend: any StorageBackend
  let clock: ManualClock
  let source = ScriptedAlerts()

  init(_ backend: any StorageBackend = InMemoryBackend()) throws {
    self.backend = backend
    clock = ManualClock(now: try instant("2026-07-01T12:00:00Z"))
  }

  /// A run of the program: opens the store, does something, closes it.
  @discardableResult func run<Value>(
    _ watchers: [Watcher], _ sinks: [any AlertSink], through disk: (any StorageBackend)? = nil,
    schedule: AlertPipeline.Schedule = .init(concurrency: 1), _ body: (AlertPipeline) async throws -> Value
  ) async throws -> Value {
    let store = try await Store.open(disk ?? backend)
    let result: Result<Value, any Error>
    do {
      let pipeline = AlertPipeline(
        watchers, queue: try await AlertQueue(store), source: source, sinks: sinks, schedule: schedule, clock: clock)
      result = .success(try await body(pipeline))
    } catch { result = .failure(error) }
    // A store that was poisoned says so again.
    do { try await store.close() } catch {}
    return try result.get()
  }

  /// One round of one run.
  @discardableResult func round(
    _ watchers: [Watcher], _ sinks: [any AlertSink], through disk: (any StorageBackend)? = nil,
    schedule: AlertPipeline.Schedule = .init(concurrency: 1)
  ) async throws -> RoundReport {
    try await run(watchers, sinks, through: disk, schedule: schedule) { try await $0.round() }
  }

  func checks() async throws -> [ClusterCheck] { try await stored { $0.checks } }
  func notices() async throws -> [AlertNotice] { try await stored { $0.notices } }

  func stored<Item>(_ repository: (AlertQueue) -> LocalRepository<Item>) async throws -> [Item] {
    let store = try await Store.open(backend)
    let items = try await repository(try await AlertQueue(store)).loadAll()
    try await store.close()
    return items
  }
}
