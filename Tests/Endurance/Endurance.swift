// Uses each object of the library a great many times, and fails where it then costs more, holds more memory or has more files open.
// Tests/EnduranceTests runs a short version; Scripts/Torture/soak.sh runs it for as long as one likes.

import CEndurance
import Foundation

@main enum Endurance {
  static func main() {
    // As large as those of threads on Apple's systems, for all threads: those of stores, and those that run tasks.
    let stackSize = 512 << 10
    guard endurance_set_stack_size(stackSize) != 0 else { fail("expected threads with stacks of \(stackSize) bytes, the system refused") }
    let arguments: Arguments
    do { arguments = try Arguments(CommandLine.arguments.dropFirst()) } catch { fail("\(error)\n\(Arguments.usage)", status: 64) }
    Task.detached {
      let found = endurance_stack_size()
      if found > stackSize + (64 << 10) { fail("expected tasks to run on stacks of \(stackSize) bytes, found \(found)") }
      say("tasks run on stacks of \(found >> 10) KB")
      do {
        var soak = Soak(arguments)
        exit(try await soak.run() ? 0 : 1)
      } catch {
        fail("\(error)")
      }
    }
    dispatchMain()
  }

  /// Ends the process with a message.
  static func fail(_ message: String, status: Int32 = 1) -> Never {
    say("Endurance: \(message)")
    exit(status)
  }

  /// Prints a line at once, so that it is out when the process ends for another reason.
  static func say(_ line: String) {
    print(line)
    fflush(nil)
  }
}
