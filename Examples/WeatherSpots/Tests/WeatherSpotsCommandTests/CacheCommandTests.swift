import Foundation
import StandInServer
import Testing

@Suite(.timeLimit(.minutes(15))) struct CacheCommandTests {
  private let workspace = Workspace()
  private let store: String

  init() async throws { store = try await workspace.store() }

  private func rows(_ now: String) async throws -> [String: [String: Any]] {
    let run = try await weatherSpots(["cache", "status", "--json", "--now", now, "--store", store])
    let rows = try #require(try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [[String: Any]])
    return Dictionary(uniqueKeysWithValues: rows.map { ($0["kind"] as? String ?? "", $0) })
  }

  @Test func statusTellsHowMuchThereIsAndHowOldAndClearRemovesIt() async throws {
    let server = try standIn()
    let api = try await server.start().absoluteString
    let forecast = ["forecast", "brest", "--api", api, "--timeout", "300", "--store", store, "--now"]
    #expect(try await weatherSpots(forecast + [morning]).code == 0)

    let fresh = try #require(try await rows("2026-11-21T09:05:00Z")["hourly"])
    #expect(fresh["entries"] as? Int == 1 && fresh["fresh"] as? Int == 1 && fresh["newest_age_seconds"] as? Int == 300)
    #expect((fresh["bytes"] as? Int ?? 0) > 1000)
    #expect(try await rows("2026-11-21T11:00:00Z")["hourly"]?["stale"] as? Int == 1)
    #expect(try await rows("2026-11-24T11:00:00Z")["hourly"]?["expired"] as? Int == 1)
    let table = try await weatherSpots(["cache", "status", "--now", "2026-11-21T11:00:00Z", "--store", store])
    #expect(
      table.output.hasPrefix(
        "kind          entries    fresh    stale  expired    bytes   newest   oldest\ncurrent             1        0        0        1"))
    #expect(table.output.contains("\nhourly              1        0        1        0"))

    #expect(try await weatherSpots(["cache", "clear", "--kind", "marine", "--store", store]) == Run(output: "Removed 1 entries.\n"))
    #expect(try await rows("2026-11-21T09:05:00Z")["hourly"]?["entries"] as? Int == 1)
    #expect(try await weatherSpots(["cache", "clear", "--store", store]).code == 0)
    #expect(try await rows("2026-11-21T09:05:00Z").values.allSatisfy { $0["entries"] as? Int == 0 })
    #expect(try await weatherSpots(["cache", "clear", "--store", store]) == Run(output: "Removed 0 entries.\n"))
    #expect(try await weatherSpots(["list", "--store", store]).output.hasPrefix("Brest "))
    let server2 = try await weatherSpots(forecast + ["2026-11-21T09:05:00Z", "--policy", "cache-only"])
    #expect(server2.code == 69)
    await server.stop()
  }

  @Test func aKindThatIsNoneIsAMistake() async throws {
    #expect(try await weatherSpots(["cache", "clear", "--kind", "spots", "--store", store]).code == 64)
  }
}
