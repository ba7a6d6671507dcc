import Foundation
import Larder
import LarderTesting
import Testing

@testable import WeatherSpotsKit

@Suite(.timeLimit(.minutes(15))) struct AlertPipelineTests {
  private let bench: AlertBench
  private let sink = RecordingSink()

  init() throws { bench = try AlertBench() }

  private func brest() throws -> [Watcher] { [try watcher("a", 48.39, -4.49), try watcher("b", 48.38, -4.48)] }

  @Test func eachWatcherIsToldOnceOfEachRevision() async throws {
    let watchers = try brest()
    bench.source.say([try warning()])
    #expect(try await bench.round(watchers, [sink]).delivered == 2)
    #expect(sink.taken.map(\.watcher).sorted() == ["a", "b"])
    #expect(sink.taken.allSatisfy { !$0.mayBeRepeat && $0.alert.summary == "Wind" && $0.checkedAt == bench.clock.now })
    // The same warning again, in another order of other warnings: nothing.
    bench.clock.advance(by: .seconds(300))
    #expect(try await bench.round(watchers, [sink]).queued == 0)
    // Another text, then another time of issue: twice more.
    bench.clock.advance(by: .seconds(300))
    bench.source.say([try warning(summary: "Strong wind")])
    #expect(try await bench.round(watchers, [sink]).delivered == 2)
    bench.clock.advance(by: .seconds(300))
    bench.source.say([try warning(summary: "Strong wind", issued: "2026-07-01T12:10:00Z")])
    #expect(try await bench.round(watchers, [sink]).delivered == 2)
    // The first text comes back, as from a server that lags: it was told.
    bench.clock.advance(by: .seconds(300))
    bench.source.say([try warning()])
    #expect(try await bench.round(watchers, [sink]).delivered == 0)
    #expect(sink.taken.count == 6 && Set(sink.taken.map(\.key)).count == 6)
  }

  @Test(arguments: [ProviderError.notAsked(WeatherProblem("out", "out"), wait: .seconds(30)), .misconfigured("no key")])
  func whatWasNeverAskedIsNotCounted(_ error: ProviderError) async throws {
    bench.source.fail(error)
    let report = try await bench.round(try brest(), [sink])
    #expect(report.calls == 0 && report.failedCalls == 1 && !report.problems.isEmpty)
    #expect(try await bench.checks().map(\.calls) == [0])
    #expect(try await bench.stored { $0.ledger }.allSatisfy { $0.calls == 0 && $0.unclustered == 0 })
    // It is still its turn.
    bench.source.say([try warning()])
    #expect(try await bench.round(try brest(), [sink]).calls == 1)
  }

  @Test func aWarningThatSeveralClustersHaveIsToldOnceToEach() async throws {
    let watchers = try brest() + [try watcher("c", 48.8, -4.0)]
    bench.source.say([try warning()])
    #expect(try await bench.round(watchers, [sink]).calls == 2)
    // Somebody who moves into another cluster because of others is not told again.
    bench.clock.advance(by: .seconds(300))
    let more = try watchers + (0..<5).map { try watcher("d\($0)", 48.40 + Double($0) * 0.001, -4.49) }
    #expect(try await bench.round(more, [sink]).delivered == 5)
    #expect(Set(sink.taken.map(\.key)).count == 8 && sink.taken.count == 8)
  }

  @Test func whatHasExpiredIsNotTold() async throws {
    bench.source.say([try warning(expires: "2026-07-01T12:00:00Z")])
    #expect(try await bench.round(try brest(), [sink]).queued == 0)
    // One that expires while a sink is out.
    bench.clock.advance(by: .seconds(300))
    bench.source.say([try warning(expires: "2026-07-01T12:06:00Z")])
    sink.fail(SinkError("out"))
    let failed = try await bench.round(try brest(), [sink])
    #expect(failed.queued == 2 && failed.failedDeliveries == 2 && failed.waiting == 2)
    bench.clock.advance(by: .seconds(120))
    let late = try await bench.round(try brest(), [sink])
    #expect(late.lapsed == 2 && late.delivered == 0 && late.waiting == 0 && sink.taken.isEmpty)
    #expect(try await bench.notices().map(\.state) == [.lapsed, .lapsed])
  }

  @Test func aClusterIsAskedForOnceInASpanHoweverOftenTheProgramRuns() async throws {
    let watchers = try brest()
    for _ in 0..<5 { try await bench.round(watchers, [sink]) }
    #expect(bench.source.asked.count == 1)
    bench.clock.advance(by: .seconds(299))
    try await bench.round(watchers, [sink])
    #expect(bench.source.asked.count == 1)
    bench.clock.advance(by: .seconds(1))
    try await bench.round(watchers, [sink])
    #expect(bench.source.asked.count == 2)
    let check = try #require(try await bench.checks().first)
    #expect(check.calls == 2 && check.watchers == 2)
    // A clock that was set back stops nobody.
    bench.clock.setWall(by: -86_400)
    try await bench.round(watchers, [sink])
    #expect(bench.source.asked.count == 3)
  }

  @Test func whatIsOldOrFollowedByAFailureIsNotCurrent() async throws {
    bench.source.say([try warning()])
    try await bench.round(try brest(), [sink])
    let now = bench.clock.now
    var check = try #require(try await bench.checks().first)
    #expect(check.isCurrent(at: now) && check.isCurrent(at: now + 299))
    #expect(!check.isCurrent(at: now + 300) && !check.isCurrent(at: now - 1))
    bench.clock.advance(by: .seconds(300))
    bench.source.fail(.serviceFailed(status: 503))
    let report = try await bench.round(try brest(), [sink])
    #expect(report.failedCalls == 1 && report.problems == ["the weather service failed (status 503)"])
    check = try #require(try await bench.checks().first)
    #expect(!check.isCurrent(at: bench.clock.now) && check.alerts.count == 1 && check.checkedAt == now)
  }

  @Test func whereThereAreNoWarningsNothingIsSaidToBeCurrent() async throws {
    bench.source.say(.notOffered)
    #expect(try await bench.round(try brest(), [sink]).notOffered == 1)
    #expect(try await bench.checks().first?.isCurrent(at: bench.clock.now) == false)
  }

  @Test func theLimitOfADayHoldsOverRunsAndThoseWhoWaitedLongestGoFirst() async throws {
    let watchers = try (0..<10).map { try watcher("w\($0)", 40 + Double($0), 3) }
    let schedule = AlertPipeline.Schedule(callsPerDay: 7, concurrency: 1)
    for _ in 0..<3 {
      try await bench.round(watchers, [sink], schedule: schedule)
      bench.clock.advance(by: .seconds(300))
    }
    #expect(bench.source.asked.count == 7)
    let report = try await bench.round(watchers, [sink], schedule: schedule)
    #expect(report.calls == 0 && report.postponed == 10)
    bench.clock.advance(by: .hours(12))
    #expect(try await bench.round(watchers, [sink], schedule: schedule).calls == 7)
    #expect(Set(bench.source.asked.suffix(7).prefix(3)).isDisjoint(with: bench.source.asked.prefix(7)))
  }

  @Test func aSinkThatFailsIsTriedAgainLaterWithTheSameKey() async throws {
    bench.source.say([try warning()])
    sink.fail(SinkError("out", retryAfter: .seconds(100)))
    #expect(try await bench.round(try brest(), [sink]).waiting == 2)
    bench.clock.advance(by: .seconds(99))
    #expect(try await bench.round(try brest(), [sink]).delivered == 0)
    bench.clock.advance(by: .seconds(1))
    #expect(try await bench.round(try brest(), [sink]).delivered == 2)
    #expect(sink.taken.allSatisfy(\.mayBeRepeat) && Set(sink.taken.map(\.key)) == Set(sink.refused.map(\.key)))
    #expect(try await bench.notices().allSatisfy { $0.state == .delivered && $0.attempts == 2 && $0.alert == nil })
  }

  @Test func whatWasCertainlyNotTakenIsNoRepeat() async throws {
    bench.source.say([try warning()])
    sink.fail(SinkError("refused", tookNothing: true))
    try await bench.round(try brest(), [sink])
    bench.clock.advance(by: .seconds(60))
    #expect(try await bench.round(try brest(), [sink]).delivered == 2)
    #expect(sink.taken.allSatisfy { !$0.mayBeRepeat })
  }

  @Test func aSinkThatFailsStopsNoOtherAndIsNotStormed() async throws {
    let single = RecordingSink("single", batchLimit: 1)
    for _ in 0..<100 { single.fail(SinkError("out")) }
    let watchers = try (0..<20).flatMap { index in
      [try watcher("a\(index)", 48.39, -4.49), try watcher("s\(index)", 48.39, -4.49, sink: "single")]
    }
    bench.source.say([try warning()])
    let report = try await bench.round(watchers, [sink, single])
    #expect(report.delivered == 20 && sink.taken.count == 20)
    // After three failures in a row the rest is not even tried.
    #expect(single.refused.count == 3 && report.waiting == 20)
  }

  @Test func settledNoticesAreForgottenADayAfterTheirWarning() async throws {
    bench.source.say([try warning()])
    try await bench.round(try brest(), [sink])
    bench.source.say([])
    bench.clock.advance(by: .hours(33))
    try await bench.round(try brest(), [sink])
    #expect(try await bench.notices().count == 2)
    bench.clock.advance(by: .hours(1))
    try await bench.round(try brest(), [sink])
    #expect(try await bench.notices().isEmpty)
  }

  @Test func theNextRoundIsWhenTheSpanEndsOrANoticeIsDue() async throws {
    func timeAfterARound() async throws -> Duration {
      try await bench.run(try brest(), [sink]) { pipeline in
        _ = try await pipeline.round()
        return try await pipeline.timeUntilNextRound()
      }
    }
    bench.clock.advance(by: .seconds(100))
    bench.source.say([try warning()])
    #expect(try await timeAfterARound() == .seconds(200))
    bench.source.say([try warning("w2")])
    bench.clock.advance(by: .seconds(200))
    sink.fail(SinkError("out", retryAfter: .seconds(77)))
    #expect(try await timeAfterARound() == .seconds(77))
  }

  @Test func aRevisionIsWhateverCanBeRead() throws {
    let first = AlertRevision(try warning())
    #expect(first == AlertRevision(try warning()))
    var other = try warning()
    other.details = nil
    #expect(AlertRevision(other) != first)
    // Fields do not run into each other.
    var (left, right) = (try warning(summary: "ab"), try warning(summary: "a"))
    left.areaName = "c"
    right.areaName = "bc"
    #expect(AlertRevision(left) != AlertRevision(right))
    right.areaName = nil
    left.summary = "a"
    left.areaName = ""
    #expect(AlertRevision(left) != AlertRevision(right))
  }
}
