import Foundation

/// The process that writes, on the disk whose power is cut: it does what its standard input says, and says what it begins and what is
/// acknowledged.
///
/// `steps COUNT` is so many steps of each task, `reopen` closes and opens. The answers are `b TASK NUMBER` where a step begins, `a TASK NUMBER`
/// where it has returned, and `idle`.
enum Writer {
  static func run(_ row: Row, _ directory: URL, seed: UInt64) async throws {
    var subject = try await row.open(directory)
    var next = 1
    say("idle")
    while let line = readLine() {
      let words = line.split(separator: " ")
      if words.first == "reopen" {
        try await subject.close()
        subject = try await row.open(directory)
      } else if words.count == 2, let count = Int(words[1]) {
        let (numbers, subject) = (next..<(next + count), subject)
        next += count
        try await withThrowingTaskGroup(of: Void.self) { group in
          for task in 0..<row.tasks {
            group.addTask {
              for number in numbers {
                let step = Step(seed: seed, task: task, number: number, isSingle: row.isSingle)
                say("b \(task) \(number)")
                try await subject.write(step)
                say("a \(task) \(number)")
              }
            }
          }
          try await group.waitForAll()
        }
      }
      say("idle")
    }
    try await subject.close()
  }

  /// Writes a line with one system call, so that it is out when this returns.
  static func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    bytes.withUnsafeBytes { _ = Foundation.write(1, $0.baseAddress, $0.count) }
  }
}
