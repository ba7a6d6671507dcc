import Synchronization

/// Work that goes on after an answer was given.
final class BackgroundTasks: Sendable {
  private let tasks = Mutex<[Int: Task<Void, Never>]>([:])

  func add(_ work: @escaping @Sendable () async -> Void) {
    tasks.withLock { tasks in
      let id = (tasks.keys.max() ?? 0) + 1
      tasks[id] = Task { [weak self] in
        await work()
        _ = self?.tasks.withLock { $0.removeValue(forKey: id) }
      }
    }
  }

  /// Waits until all tasks that were added before are done.
  func finish() async {
    for task in tasks.withLock({ Array($0.values) }) { await task.value }
  }
}
