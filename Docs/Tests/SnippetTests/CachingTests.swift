import Larder
import LarderTesting
import Testing

struct CachingTests {
  @Test func anOldValueIsShownWhenTheServerIsDown() async throws {
    struct Down: Error {}
    let clock = ManualClock()
    let source = ScriptedSource<String, Int> { _, _ in .value(21) }
    let cache = CachedRepository(
      storage: try await LocalRepository(inMemory: .init()), freshness: FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48)),
      retry: .never, clock: clock, source: source)
    #expect(try await cache.value(for: "jogashima").state == .fresh)

    clock.advance(by: .hours(2))
    source.answer("jogashima", .failure(Down()))
    let old = try await cache.value(for: "jogashima")
    #expect(old.state == .stale)
    #expect(old.refreshError is Down)
  }
}
