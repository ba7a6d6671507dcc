/// The work of a writer on its store: an argument of `LedgerWriter write`.
enum Workload {
  /// Small steps of four tasks.
  case exclusive
  /// Small steps, large batches and one checkpoint after the other.
  case checkpoint
  /// Large batches of two tasks.
  case importing
  /// Small steps of two tasks; another process has the other two.
  case shared(Int)

  /// The task that only makes checkpoints.
  static let checkpointTask = 4

  init(_ text: String) {
    switch text {
    case "checkpoint": self = .checkpoint
    case "importing": self = .importing
    case "shared0": self = .shared(0)
    case "shared1": self = .shared(1)
    default: self = .exclusive
    }
  }

  var tasks: Range<Int> {
    switch self {
    case .exclusive: 0..<4
    case .checkpoint: 0..<5
    case .importing: 0..<2
    case .shared(let number): 2 * number..<2 * number + 2
    }
  }

  /// Whether the task's steps are large batches.
  func isBulk(_ task: Int) -> Bool {
    switch self {
    case .checkpoint: task == 0
    case .importing: true
    case .exclusive, .shared: false
    }
  }
}
