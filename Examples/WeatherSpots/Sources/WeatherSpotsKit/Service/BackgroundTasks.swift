import Synchronization

/// Set of running tasks that outlive the call that started them.
final class BackgroundTasks: Sendable {
  private let tasks = Mutex<[Int: Task<Void, Never>]>([:])

  func add(_ work: @escaping @Sendable () async -> Void) {
    // Creation under the lock: a task that ends at once must not remove its entry before it is there.
    tasks.withLock { tasks in
      let id = (tasks.keys.max() ?? 0) + 1
      tasks[id] = Task { [weak self] in
        await work()
        _ = self?.tasks.withLock { $0.removeValue(forKey: id) }
      }
    }
  }

  /// Waits until all tasks that were added before the call have ended.
  func finish() async {
    // A copy, because each task needs the lock to remove itself when it ends.
    for task in tasks.withLock({ Array($0.values) }) { await task.value }
  }
}
