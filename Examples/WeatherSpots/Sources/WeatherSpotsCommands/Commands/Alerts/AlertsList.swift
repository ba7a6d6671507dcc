import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct AlertsList: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Lists the warnings that `alerts watch` has found, and the notices that wait for delivery.",
    discussion: """
      Sends no request. Warnings count as current only if they were fetched within the last five minutes; older ones are shown as last \
      known, and the exit code is 4.
      """)

  @OptionGroup var time: TimeOption

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    let now = time.clock.now
    let lists = try await globals.withStore { storage in try await Self.lists(storage, at: now) }
    if globals.json { try writeJSON(lists) } else { try writeText(lists.text) }
    // A script must not take last known warnings for current ones.
    if lists.clusters.contains(where: { !$0.isCurrent && !$0.alerts.isEmpty }) { throw ExitCode(Outcome.stale.rawValue) }
  }

  private static func lists(_ storage: SpotStore, at now: Date) async throws -> Lists {
    let queue = try await AlertQueue(storage.store)
    var clusters: [Cluster] = []
    for check in try await queue.checks.loadAll() {
      let near = Query.spots(near: check.id.center, within: .kilometers(SpotCluster.radius))
      // A cluster ends at the border, as warnings are asked for by country, while the circle crosses it.
      let spots = try await storage.spots.fetch(near).filter { $0.country == check.id.country }.map(\.name)
      clusters.append(Cluster(check: check, spots: spots, now: now))
    }
    var counts: [String: Int] = [:]
    for notice in try await queue.notices.loadAll() { counts[notice.state.rawValue, default: 0] += 1 }
    let calls = try await queue.ledger.loadAll().last
    return Lists(
      // The cluster id breaks ties, so that two runs list clusters in the same order.
      clusters: clusters.sorted { ($0.spots.first ?? "", $0.check.id.rawValue) < ($1.spots.first ?? "", $1.check.id.rawValue) },
      notices: counts, callsOnLastDay: calls?.calls ?? 0, callsWithoutClusters: calls?.unclustered ?? 0)
  }

  private struct Lists: Encodable {
    let clusters: [Cluster]
    let notices: [String: Int]
    let callsOnLastDay: Int
    let callsWithoutClusters: Int

    var text: String {
      guard !clusters.isEmpty else { return "No warnings fetched yet; `weather-spots alerts watch` fetches them.\n" }
      let states = AlertNotice.State.allCases.map { "\(notices[$0.rawValue] ?? 0) \($0.rawValue)" }.joined(separator: ", ")
      return clusters.map(\.text).joined() + "Notices: \(states). Calls on the last day: \(callsOnLastDay), "
        + "\(callsWithoutClusters) with one for each place.\n"
    }
  }

  private struct Cluster: Encodable {
    let check: ClusterCheck
    let spots: [String]
    let now: Date

    var isCurrent: Bool { check.isCurrent(at: now) }
    // Expired warnings stay stored until the next check, and must not be shown.
    var alerts: [WeatherAlert] { check.alerts.filter { now < $0.expires } }
    private var ageSeconds: Int? { check.checkedAt.map { Int(now.timeIntervalSince($0).rounded()) } }
    private var problem: String? { check.isOffered ? check.problem : "the provider has no warnings here" }

    func encode(to encoder: any Encoder) throws {
      let row: JSONRow = [
        "cluster": check.id.rawValue, "spots": spots, "current": isCurrent, "checkedAt": check.checkedAt?.formatted(.iso8601),
        "ageSeconds": ageSeconds, "calls": check.calls, "problem": problem, "alerts": alerts.map(AlertReport.init),
      ]
      try row.encode(to: encoder)
    }

    var text: String {
      let names = spots.isEmpty ? "Spots that are gone" : spots.joined(separator: ", ")
      let age = ageSeconds.map { isCurrent ? "as of \(ageText(seconds: $0)) ago" : "last known \(ageText(seconds: $0)) ago, not current" }
      let count = alerts.isEmpty ? "no warnings" : counted(alerts.count, "warning")
      let lines = alerts.map { "  \($0.summary), \($0.severity), until \($0.expires.formatted(.iso8601)), \($0.source)\n" }
      return "\(names) (\(check.id.rawValue)): \(count), \(age ?? "never answered")\(problem.map { "; \($0)" } ?? "")\n\(lines.joined())"
    }
  }
}
