import Larder

/// Several tasks that do random operations on one subject at once, recorded.
struct HistoryRun {
  let seed: UInt64
  let recorder = HistoryRecorder()
  let keys: [Int]
  let tasks: Int
  let operations: Int

  init(seed: UInt64, operations: Int = 200) {
    var random = SeededGenerator(seed)
    self.seed = seed
    self.operations = operations
    tasks = random.int(4..<9)
    keys = Array(0..<random.int(3..<6))
  }

  /// Runs all tasks to their end.
  func run(on subject: some RegisterSubject) async {
    let barrier = StartBarrier(tasks)
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<tasks {
        group.addTask {
          var random = SeededGenerator(seed &+ UInt64(task) &* 0x1234_5678_9ABC_DEF1)
          await barrier.wait()
          for number in 0..<(operations / tasks) {
            let call = Self.call(&random, keys: keys, value: (task + 1) * 1_000_000 + number)
            await perform(call, on: subject, cancelsAfter: random.chance(8) ? random.int(0..<4) : nil)
            for _ in 0..<random.int(0..<3) { await Task.yield() }
          }
        }
      }
    }
  }

  /// Reads every key once more, when all is over.
  func readAll(from subject: some RegisterSubject) async {
    for key in keys { await perform(.find(key), on: subject, cancelsAfter: nil) }
  }

  private func perform(_ call: RegisterCall, on subject: some RegisterSubject, cancelsAfter yields: Int?) async {
    let trace = RegisterTrace()
    let invoked = recorder.tick()
    do {
      if let yields {
        let task = Task { try await subject.perform(call, trace) }
        for _ in 0..<yields { await Task.yield() }
        task.cancel()
        try await task.value
      } else {
        try await subject.perform(call, trace)
      }
      recorder.returned(trace.operations, invoked: invoked)
    } catch RepositoryError.Code.outcomeUnknown {
      recorder.unknown(trace.operations, invoked: invoked)
    } catch {
      return  // promised to have done nothing: if anybody saw its value, no order explains that
    }
  }

  private static func call(_ random: inout SeededGenerator, keys: [Int], value: Int) -> RegisterCall {
    let key = keys[random.int(0..<keys.count)]
    switch random.int(0..<100) {
    case 0..<22: return .find(key)
    case 22..<36: return .save(key, value)
    case 36..<40: return .saveAll(Array(keys.shuffled(using: &random).prefix(random.int(1..<4))), value)
    case 40..<50: return .insert(key, value)
    case 50..<65: return .update(key, value)
    case 65..<75: return .compareAndSet(key, value)
    case 75..<83: return .delete(key)
    case 83..<95:
      return .transaction(Array(keys.shuffled(using: &random).prefix(random.int(1..<4))), random.chance(80) ? value : nil)
    default: return .snapshot
    }
  }
}
