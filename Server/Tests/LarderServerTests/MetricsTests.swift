import Metrics
import MetricsTestKit
import Testing

@testable import BoundedHTTP
@testable import LarderServer

@Suite(.timeLimit(.minutes(15))) struct MetricsTests {
  /// The metrics system of the process of the tests, which may be set once.
  private static let system: TestMetrics = {
    let metrics = TestMetrics()
    MetricsSystem.bootstrap(metrics)
    return metrics
  }()

  @Test func numbersGoToTheMetricsSystemOfTheProcess() throws {
    let system = Self.system
    let metrics = ServerMetrics()
    metrics.requests.note("/test", "GET", status: 299, seconds: 0.25)
    metrics.requests.note("/test", "GET", status: 299, seconds: 0.5)
    metrics.note(accepted: 3, conflicts: 0, rejected: 0)
    let dimensions = [("route", "/test"), ("method", "GET"), ("status", "299")]
    #expect(try system.expectCounter("larder_requests_total", dimensions).totalValue == 2)
    #expect(try system.expectTimer("larder_request_seconds", [("route", "/test")]).values == [250_000_000, 500_000_000])
    #expect(try system.expectCounter("larder_push_groups_total", [("outcome", "accepted")]).totalValue >= 3)
    #expect(
      metrics.text(streams: 0, connections: 0, bytesHeld: 0).contains(#"larder_requests_total{route="/test",method="GET",status="299"} 2"#))
  }
}
