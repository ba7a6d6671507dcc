internal import Larder
internal import LarderTesting

/// Samples of what programs do with a store.
extension CrashWorkload {
  package static let creation = CrashWorkload("creation")

  package static let firstSave = make("first save") { $0.save("a") }

  package static let batches = make("batches") {
    $0.save("a", "b", "tokyo")
    $0.save("c", "a", size: 700)
    $0.save("d", "e", "f", "g", size: 40, commits: 4)
  }

  package static let deletes = make("deletes") {
    $0.save("a", "b", "c")
    $0.save("-a", "-x")
    $0.save("a", "-b")
    $0.checkpoint()
    $0.save("-c")
  }

  package static let checkpoints = make("checkpoints") {
    $0.save("a", "b")
    $0.checkpoint()
    $0.save("c")
    $0.save("a")
    $0.checkpoint()
    $0.checkpoint()
    $0.save("d")
  }

  package static let previous = make("checkpoint that keeps the previous snapshot") {
    $0.options.keepsPreviousSnapshot = true
    $0.save("a")
    $0.checkpoint()
    $0.save("b", "-a")
    $0.checkpoint()
  }

  package static let closing = make("closing and opening again") {
    $0.save("a")
    $0.reopen()
    $0.reopen()
    $0.save("b")
    $0.reopen()
    $0.save("c")
  }

  package static let largeRecords = make("records over many sectors") {
    $0.save("a", size: 1_500)
    $0.save("b", "c", size: 1_200, commits: 2)
    $0.checkpoint()
    $0.save("a", size: 2_500)
  }

  package static let buffered = make("buffered commits") {
    $0.save("a")
    $0.save("b", durability: .buffered)
    $0.save("c", "-a", durability: .buffered)
    $0.flush()
    $0.save("d", size: 600, durability: .buffered)
    $0.save("e", durability: .buffered)
    $0.save("f")
    $0.save("g", durability: .buffered)
    $0.checkpoint()
    $0.save("h", durability: .buffered)
  }

  package static let bufferedAnew = make("buffered commits into an emptied log") {
    $0.save("a", "b")
    $0.checkpoint()
    $0.save("c", durability: .buffered)
    $0.save("a", durability: .buffered)
    $0.save("d", durability: .buffered)
    $0.save("-b", durability: .buffered)
    $0.save("e", durability: .buffered)
  }

  package static let background = make("a checkpoint beside commits") {
    $0.save("a", "b")
    $0.save("c", "-a", durability: .buffered)
    $0.beginCheckpoint()
    $0.save("d", "b")
    $0.work()
    $0.save("-c", durability: .buffered)
    $0.continueCheckpoint()
    $0.save("a", size: 700)
    $0.work()
    $0.save("f", durability: .buffered)
    $0.continueCheckpoint()
    $0.save("d", "-b")
  }

  package static let backgroundGivenUp = make("checkpoints beside commits, given up") {
    $0.save("a", "b")
    $0.beginCheckpoint()
    $0.save("c")
    $0.work()
    $0.checkpoint()
    $0.continueCheckpoint()
    $0.save("-a")
    $0.beginCheckpoint()
    $0.work()
    $0.continueCheckpoint()
    $0.save("d")
    $0.beginCheckpoint()
    $0.work()
    $0.save("e")
    $0.continueCheckpoint()
    $0.reopen()
    $0.save("f")
    $0.beginCheckpoint()
    $0.reopen()
  }

  /// A sequence of any steps.
  package static func random(seed: UInt64) -> CrashWorkload {
    var generator = SeededGenerator(seed)
    return make("random steps, seed \(seed)") { workload in
      for _ in 0..<10 {
        switch Int.random(in: 0..<18, using: &generator) {
        case 12, 13: workload.beginCheckpoint()
        case 14, 15: workload.work()
        case 16, 17: workload.continueCheckpoint()
        case 0: workload.checkpoint()
        case 1: workload.reopen()
        case 2: workload.flush()
        default:
          let keys = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
            (Int.random(in: 0..<4, using: &generator) == 0 ? "-" : "")
              + ["a", "b", "tokyo", "toba", "e"][Int.random(in: 0..<5, using: &generator)]
          }
          let size = [8, 90, 700][Int.random(in: 0..<3, using: &generator)]
          let commits = UInt64.random(in: 1...UInt64(keys.count), using: &generator)
          workload.save(keys, size: size, commits: commits, durability: Bool.random(using: &generator) ? .durable : .buffered)
        }
      }
    }
  }

  private static func make(_ name: String, _ build: (inout CrashWorkload) -> Void) -> CrashWorkload {
    var workload = CrashWorkload(name)
    build(&workload)
    return workload
  }
}
