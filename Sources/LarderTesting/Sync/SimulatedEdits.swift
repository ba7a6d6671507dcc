internal import Larder
internal import Synchronization

/// The counters of a history: how often each was incremented in a commit that holds.
final class SimulatedCounts: Sendable {
  private let counts = Mutex<[String: Int]>([:])
  var all: [String: Int] { counts.withLock { $0 } }
  func add(_ id: String) { counts.withLock { $0[id, default: 0] += 1 } }
}

/// The increments that a device makes, some of them while its engine waits for the network.
final class SimulatedEdits {
  private let counted: SimulatedCounts
  private var number = 0
  /// The increment in whose commit the process has died.
  private var unknown: (id: String, before: Int)?

  init(_ counted: SimulatedCounts) { self.counted = counted }

  /// Adds one to a counter that all devices share, and makes it where it is missing.
  func increment(_ records: any SimulatedRecords) async {
    number += 1
    let id = "c\(number % 3)"
    let before = records.fields(of: id)?.count ?? 0
    do {
      try await records.increment(id, in: SimulatedDevice.scopes[0])
      counted.add(id)
    } catch {
      // A newer app has written the counter, so that nothing was added.
      if (error as? RepositoryError)?.code == .newerSchema { return }
      // The process has died: whether in this commit, and behind it, is seen once it is up again.
      unknown = unknown ?? (id, before)
    }
  }

  /// Counts an increment in whose commit the process has died, if it is there.
  func resolve(_ records: any SimulatedRecords) {
    guard let (id, before) = unknown else { return }
    unknown = nil
    if records.fields(of: id)?.count == before + 1 { counted.add(id) }
  }
}
