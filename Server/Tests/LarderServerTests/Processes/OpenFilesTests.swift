import Foundation
import Testing

@testable import larder_server

@Suite struct OpenFilesTests {
  @Test(
    arguments: [
      // The limit now, the hard limit, the most that the system accepts, and the limit that is set.
      (256, rlim_t.max, 10_240, 10_240), (1_024, 4_096, 10_240, 4_096), (20_000, .max, 10_240, 20_000), (1_024, 1_048_576, nil, 1_048_576),
      (1_024, 1_024, nil, 1_024),
    ] as [(rlim_t, rlim_t, rlim_t?, rlim_t)])
  func theLimitIsRaisedAsFarAsTheSystemAccepts(_ now: rlim_t, _ hard: rlim_t, _ ceiling: rlim_t?, _ raised: rlim_t) {
    #expect(OpenFiles.highest(rlimit(rlim_cur: now, rlim_max: hard), ceiling: ceiling) == raised)
  }
}
