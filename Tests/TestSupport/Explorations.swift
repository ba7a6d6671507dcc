internal import Dispatch
package import LarderTesting

/// Explorations of several workloads beside each other, on threads of their own.
package enum Explorations {
  /// A workload in which a check has failed.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// Explores some workloads, and random ones from then on until there were enough images.
  ///
  /// - Parameters:
  ///   - seed: The seed of the first random workload; each further one has the next.
  ///   - images: The least number of images; 0 to explore the given workloads alone.
  /// - Throws: ``Failure`` for the first workload that fails.
  package static func run(
    _ workloads: [CrashWorkload], thenFrom seed: UInt64 = 0, images: Int = 0,
    _ body: @escaping @Sendable (CrashWorkload) throws -> CrashExplorer.Exploration
  ) async throws -> CrashExplorer.Exploration {
    var result = try await together(workloads, body)
    var next = seed
    while result.images < images {
      // The limit of time of a test ends only what looks for it.
      try Task.checkCancellation()
      result += try await together((0..<4).map { .random(seed: next &+ $0) }, body)
      next &+= 4
    }
    return result
  }

  private static func together(
    _ workloads: [CrashWorkload], _ body: @escaping @Sendable (CrashWorkload) throws -> CrashExplorer.Exploration
  ) async throws -> CrashExplorer.Exploration {
    try await withThrowingTaskGroup(of: CrashExplorer.Exploration.self) { group in
      for workload in workloads {
        group.addTask {
          let result = await DispatchQueue.global().run { Swift.Result { try body(workload) } }
          do { return try result.get() } catch { throw Failure(description: "\(workload.name): \(error)") }
        }
      }
      return try await group.reduce(into: .init()) { $0 += $1 }
    }
  }
}
