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

  /// The stream of the tool that leads to the terminal.
  ///
  /// The other one is read apart.
  enum Stream { case output, errors }

  /// Runs the tool with the terminal as one of its streams, and returns what it has written there and elsewhere.
  func run(_ arguments: [String], showing stream: Stream = .errors) async throws -> Run {
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
    let program = Executable.path(FilePath(buildDirectory.appending(path: "larder").path))
    var run: Run
    switch stream {
    case .errors:
      let result = try await Subprocess.run(
        program, arguments: Arguments(arguments), output: .string(limit: 1 << 24),
        error: .fileDescriptor(device, closeAfterSpawningProcess: true))
      run = Run(output: result.standardOutput, code: Self.code(result.terminationStatus))
    case .output:
      let result = try await Subprocess.run(
        program, arguments: Arguments(arguments), output: .fileDescriptor(device, closeAfterSpawningProcess: true),
        error: .string(limit: 1 << 20))
      run = Run(output: "", errors: result.standardError, code: Self.code(result.terminationStatus))
    }
    var text: [UInt8] = []
    for await part in texts { text += part }
    try main.close()
    let shown = String(decoding: text, as: UTF8.self)
    if stream == .output { run.output = shown } else { run.errors = shown }
    return run
  }

  private static func code(_ status: TerminationStatus) -> Int32 { if case .exited(let code) = status { Int32(code) } else { -1 } }
}
