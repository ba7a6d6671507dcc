import Foundation
import TestSupport
import Testing

/// The short version of `make soak`, in a process of its own: what other tests allocate and open is not counted.
@Suite("Endurance") struct EnduranceTests {
  @Test(.timeLimit(.minutes(120))) func nothingGrowsHoweverOftenItIsUsed() async throws {
    let directory = try TemporaryDirectory(inMemory: true)
    // The full counts belong to torture, and so do costs: over so few uses, other processes decide them.
    let output = try await run(Torture.isOn ? ["--share", "100", "--cost", "3"] : ["--share", "0.1", "--cost", "1000"], in: directory)
    #expect(output.status == 0, "\(output.text)")
    // A run without a scenario would have found nothing either.
    #expect(output.text.split(separator: "\n").count > 70)
    #expect(try directory.names == ["output"])
  }

  @Test func aMistakeInTheArgumentsIsTold() async throws {
    let output = try await run(["--minuets", "3"], in: try TemporaryDirectory())
    #expect(output.status == 64)
    #expect(output.text.hasPrefix("Endurance: expected an option, found --minuets\nusage: Endurance"))
  }

  /// Runs the command, which is built beside the tests, without holding a thread meanwhile.
  private func run(_ arguments: [String], in directory: TemporaryDirectory) async throws -> (status: Int32, text: String) {
    let file = directory.file("output")
    try Data().write(to: file)
    let handle = try FileHandle(forWritingTo: file)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("Endurance")
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(["TMPDIR": directory.path]) { $1 }
    process.standardOutput = handle
    let (exits, exit) = AsyncStream.makeStream(of: Int32.self)
    process.terminationHandler = { process in
      exit.yield(process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus)
      exit.finish()
    }
    try process.run()
    var status: Int32 = -1
    for await found in exits { status = found }
    try handle.close()
    return (status, String(decoding: try Data(contentsOf: file), as: UTF8.self))
  }
}
