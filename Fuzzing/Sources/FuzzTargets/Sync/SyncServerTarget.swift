import Dispatch
import Foundation
import Synchronization

@testable import Larder
@testable import LarderTesting

/// A device that syncs with a server that lies: no byte leaves or changes but of the records that the device has asked about.
///
/// An input is the choices of the server and of the device's edits. All is in memory.
enum SyncServerTarget {
  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    let choices = ByteChoices(Array(bytes))
    let files = SimulatedFileSystem()
    try files.createDirectory("/d")
    let (ended, breach) = (DispatchSemaphore(value: 0), Outcome())
    // The target is synchronous, and an exchange is not.
    Task {
      do {
        try await HostileSyncTrial.run(choices: choices, rounds: 4) {
          JSONFileBackend(file: URL(filePath: "/d/s.json"), fileSystem: files)
        }
      } catch { breach.text.withLock { $0 = "\(error)" } }
      ended.signal()
    }
    ended.wait()
    if let text = breach.text.withLock({ $0 }) { throw BrokenPromise(text) }
  }

  private final class Outcome: Sendable {
    let text = Mutex<String?>(nil)
  }
}

/// A generator whose numbers are the bytes of an input.
///
/// After the last byte, the length of the input is the seed of the numbers that follow.
private struct ByteChoices: RandomNumberGenerator, Sendable {
  private let bytes: [UInt8]
  private var position = 0
  private var rest: SeededGenerator

  init(_ bytes: [UInt8]) { (self.bytes, rest) = (bytes, SeededGenerator(seed: UInt64(bytes.count))) }

  mutating func next() -> UInt64 {
    // Equal numbers for ever would never end the search for one below a bound.
    guard position < bytes.count else { return rest.next() }
    position += 1
    return UInt64(bytes[position - 1]) &* 0x0101_0101_0101_0101
  }
}
