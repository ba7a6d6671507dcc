import Foundation
import Testing

/// The transcripts of README.md, run as they are written there.
@Suite(.timeLimit(.minutes(15))) struct TranscriptTests {
  private struct Step {
    var command: String
    var output = ""
  }

  /// The commands behind `$` in the blocks of a text, each with what it prints.
  private static func steps(of text: String) -> [Step] {
    var steps: [Step] = []
    var isBlock = false
    var isCommand = false
    var hasCommand = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```") {
        (isBlock, isCommand, hasCommand) = (!isBlock, false, false)
      } else if isBlock, line.hasPrefix("$ ") {
        steps.append(Step(command: String(line.dropFirst(2))))
        hasCommand = true
        isCommand = line.hasSuffix("\\") || line.hasSuffix("|")
      } else if hasCommand {
        if isCommand {
          steps[steps.count - 1].command += "\n\(line)"
          isCommand = line.hasSuffix("\\") || line.hasSuffix("|")
        } else {
          steps[steps.count - 1].output += "\(line)\n"
        }
      }
    }
    return steps
  }

  /// A text without what is another one each time: histories, times, ports.
  private static func plain(_ text: String) -> String {
    text.replacing(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, with: "HISTORY").replacing(/\b1[0-9]{12}\b/, with: "TIME")
      .replacing(/127\.0\.0\.1:[0-9]+/, with: "ADDRESS")
  }

  @Test func theREADMEIsTrue() async throws {
    let tools = ["/usr/bin/curl", "/bin/bash", "/usr/bin/gzip"].filter { !FileManager.default.isExecutableFile(atPath: $0) }
    guard tools.isEmpty else { return print("skipped theREADMEIsTrue: \(tools.joined(separator: ", ")) missing") }
    let readme = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../README.md")
    let steps = Self.steps(of: try String(contentsOf: readme, encoding: .utf8))
    #expect(steps.count > 8)
    let directory = try TemporaryDirectory()
    let shell = Shell(directory: directory)
    defer { shell.endServer() }
    for step in steps {
      // The server takes a port that is free, and stays; a stream of events is read as far as it is printed, and then cut off.
      let command = step.command.replacing("--port 8080", with: "--port 0").replacing("127.0.0.1:8080", with: "127.0.0.1:\(shell.port)")
      let lines = step.output.split(separator: "\n").count
      let output =
        command.hasSuffix("&")
        ? try await shell.startServer(String(command.dropLast()))
        : try await shell.run(command, lines: command.contains("-sN") ? lines : nil)
      #expect(Self.plain(output) == Self.plain(step.output), "\(step.command)")
    }
  }
}

/// A shell in a directory of its own, with the server's command in its path.
private final class Shell {
  private let directory: TemporaryDirectory
  private var server: Process?
  private(set) var port = 0

  init(directory: TemporaryDirectory) { self.directory = directory }

  private func start(_ command: String) throws -> (process: Process, lines: AsyncStream<String>) {
    let (process, pipe) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/bin/bash")
    process.arguments = ["-c", command]
    process.currentDirectoryURL = URL(fileURLWithPath: directory.path)
    var environment = ProcessInfo.processInfo.environment
    let folder = URL(fileURLWithPath: BuiltPrograms.larderServer).deletingLastPathComponent().path
    environment["PATH"] = "\(folder):\(environment["PATH"] ?? "/usr/bin:/bin")"
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"] { environment[name] = nil }
    process.environment = environment
    (process.standardOutput, process.standardError) = (pipe, FileHandle.nullDevice)
    try process.run()
    // On a thread of its own, which ends with the process or with whoever reads no more.
    let lines = AsyncStream<String> { continuation in
      Thread.detachNewThread {
        var rest = ""
        while case let data = pipe.fileHandleForReading.availableData, !data.isEmpty {
          rest += String(decoding: data, as: UTF8.self)
          while let end = rest.firstIndex(of: "\n") {
            continuation.yield(String(rest[..<end]))
            rest.removeSubrange(...end)
          }
        }
        if !rest.isEmpty { continuation.yield(rest) }
        continuation.finish()
      }
    }
    return (process, lines)
  }

  /// Runs a command, and returns its lines, or the first ones of a command that does not end by itself.
  func run(_ command: String, lines wanted: Int?) async throws -> String {
    let (process, lines) = try start(wanted == nil ? command : "exec \(command)")
    var output = ""
    var count = 0
    for await line in lines where !line.isEmpty {
      output += "\(line)\n"
      count += 1
      if count == wanted { break }
    }
    // Children of a thread of Swift's tasks have SIGTERM blocked, and curl leaves it so.
    if wanted != nil { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
    return output
  }

  /// Starts the server, and returns its first line.
  func startServer(_ command: String) async throws -> String {
    let (process, lines) = try start("exec \(command)")
    server = process
    for await line in lines {
      port = Int(line.split(separator: ":").last ?? "") ?? 0
      return "\(line)\n"
    }
    return ""
  }

  func endServer() {
    server?.terminate()
    server?.waitUntilExit()
  }
}
