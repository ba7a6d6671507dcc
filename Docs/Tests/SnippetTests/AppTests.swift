import Foundation
import Larder
import Testing

@testable import Snippets

@Suite(.timeLimit(.minutes(1))) struct AppTests {
  @Test func aConstantInAPredicateFindsACaseByItsIndex() async throws {
    let sessions = LocalRepository(
      previewing: [
        Session(id: UUID(), wind: .offshore, day: .now), Session(id: UUID(), wind: .onshore, day: .now),
      ], schema: Session.schema)
    let found = try await offshoreSessions(sessions)
    #expect(found.map(\.wind) == [.offshore])
    let wanted = Wind.offshore
    let plan = sessions.explain(Query().where(#Predicate { $0.wind == wanted }).sorted(by: \.day))
    #expect(plan.access != .scan)
  }

  @Test func samplesAreReadableAtOnce() {
    let spots = sampleSpots()
    #expect(spots.snapshot.loadAll().count == Spot.samples.count)
    #expect(spots.openReport.isClean)
  }
}
