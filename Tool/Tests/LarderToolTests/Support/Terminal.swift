import Foundation
import Subprocess

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// A terminal of the system, without a person before it.
struct Terminal {
  private let main: FileDescriptor
  private let device: FileDescriptor

  init() throws {
    var (mine, programs): (Int32, Int32) = (-1, -1)
    guard openpty(&mine, &programs, nil, nil, nil) == 0 else { throw Errno(rawValue: errno) }
    (main, device) = (FileDescriptor(rawValue: mine), FileDescriptor(rawValue: programs))
  }

  /// Runs the tool with the terminal as its standard error, and returns what it has written there.
  func run(_ arguments: [String]) async throws -> Run {
    // Read meanwhile, on a thread of its own: a terminal that nobody reads stops the program.
    let (texts, ending) = AsyncStream.makeStream(of: [UInt8].self)
    let reader = main.rawValue
    Thread.detachNewThread {
      var (text, buffer): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 4_096))
      // Linux gives an error at the end, once nobody has the terminal open any more, and Darwin nothing.
      while case let count = read(reader, &buffer, buffer.count), count > 0 { text += buffer.prefix(count) }
      ending.yield(text)
      ending.finish()
    }
    let result = try await Subprocess.run(
      .path(FilePath(buildDirectory.appending(path: "larder").path)), arguments: Arguments(arguments), output: .string(limit: 1 << 24),
      error: .fileDescriptor(device, closeAfterSpawningProcess: true))
    var text: [UInt8] = []
    for await part in texts { text += part }
    try main.close()
    guard case .exited(let code) = result.terminationStatus else { return Run(output: result.standardOutput, code: -1) }
    return Run(output: result.standardOutput, errors: String(decoding: text, as: UTF8.self), code: Int32(code))
  }
}
