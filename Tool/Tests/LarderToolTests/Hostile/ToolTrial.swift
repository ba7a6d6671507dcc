import Foundation
import Larder
import LarderToolKit
import Testing

/// A store in a folder that commands must leave as it is, and a folder for what they make.
struct ToolTrial {
  let store: String
  private let folder: Workspace
  private let targets: Workspace

  init(_ store: String, in folder: Workspace) throws {
    (self.store, self.folder) = (store, folder)
    targets = try Workspace()
  }

  /// Runs commands in this process: no byte is changed, and a refused one leaves nothing behind.
  /// - Parameter heard: Called with each command, and its answer.
  func run(_ commands: [TriedCommand], _ context: String, _ heard: (TriedCommand, TriedCommand.Answered) -> Void = { _, _ in }) throws {
    let before = try DirectoryState(folder)
    for command in commands {
      let answer = command.run(store, to: targets.path("new"))
      heard(command, answer)
      try check(command, answer.status, before, context)
    }
  }

  /// Runs one command by the built tool; its exit code is one of the list.
  @discardableResult
  func runBuilt(_ command: TriedCommand, _ context: String) async throws -> Run {
    let before = try DirectoryState(folder)
    let run = try await larder(command.arguments(store, to: targets.path("new")))
    let status = LarderToolKit.ExitStatus(rawValue: run.code)
    #expect(status != nil, "\(command): \(context): \(run)")
    #expect(run.code != 2 || !run.errors.isEmpty || !run.output.isEmpty, "\(command): \(context): refused without a word")
    try check(command, status ?? .refused, before, context)
    return run
  }

  private func check(_ command: TriedCommand, _ status: LarderToolKit.ExitStatus, _ before: DirectoryState, _ context: String) throws {
    #expect(try DirectoryState(folder) == before, "\(command): \(context)")
    let made = try FileManager.default.contentsOfDirectory(atPath: targets.directory.path)
    let isMade = command.makesStore && status != .refused
    #expect(made.count == (isMade ? 1 : 0), "\(command): \(context): \(made)")
    for name in made {
      if isMade { #expect(StoreVerdict(ofStoreAt: targets.path(name)).status == .success, "\(command): \(context)") }
      try FileManager.default.removeItem(at: targets.url(name))
    }
  }
}
