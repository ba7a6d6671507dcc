internal import Dispatch

/// Threads of its own for migrations: they neither take the cooperative pool's, nor wait until it has nothing better to do.
final class MigrationExecutor: TaskExecutor {
  static let lazy = MigrationExecutor(.utility)
  static let urgent = MigrationExecutor(.userInitiated)

  private let queue: DispatchQueue

  private init(_ qos: DispatchQoS) { queue = DispatchQueue(label: "larder.migration", qos: qos, attributes: .concurrent) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
