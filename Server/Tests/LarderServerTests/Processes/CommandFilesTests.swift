import Foundation
import LarderSync
import Testing

@testable import LarderServer

/// The files that commands of `larder-server` replace, make and refuse.
@Suite(.timeLimit(.minutes(2))) struct CommandFilesTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: directory.file(name), withDestinationPath: target)
  }

  private func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() }

  /// Expects a command to fail, and to say some words.
  private func expectFailure(_ words: String, _ arguments: [String], _ line: Int = #line) async throws {
    let failure = await #expect(throws: ServerFailure.self, "line \(line)") { try await ServerProcess.run("", arguments) }
    #expect(failure?.said.contains(words) == true, "line \(line): \(failure?.said ?? "")")
  }

  // MARK: Tokens

  /// A rename onto a link would replace the link, and leave every token valid.
  @Test func aTokenIsRevokedThroughALink() async throws {
    try FileManager.default.createDirectory(atPath: directory.file("etc"), withIntermediateDirectories: false)
    try link("first", to: "etc/second")
    try link("etc/second", to: "tokens")
    let (tokens, first) = (directory.file("etc/tokens"), directory.file("first"))
    let token = try await ServerProcess.run("", ["token", "add", "--tokens", first, "ann", "a:rw"]).trimmingCharacters(in: .newlines)
    let authorizer = try TokenFileAuthorizer(path: first, logger: LogLines().logger())
    #expect(try await authorizer.identity(of: token).name == "ann")
    #expect(try await ServerProcess.run("", ["token", "revoke", "--tokens", first, "ann"]) == "1 lines revoked\n")
    #expect(try String(contentsOfFile: tokens, encoding: .utf8) == "")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: first) == "etc/second")
    // The link is the same as before, and the file that it leads to is another one.
    await authorizer.reload()
    await #expect(throws: SyncProblem.unauthorized) { try await authorizer.identity(of: token) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.file("etc")).sorted() == ["second", "tokens"])
  }

  @Test func whatIsNoFileIsNotReplaced() async throws {
    try link("circle", to: "circle")
    #expect(mkfifo(directory.file("pipe"), 0o600) == 0)
    try await expectFailure("links that lead in a circle", ["token", "add", "--tokens", directory.file("circle"), "ann", "a:rw"])
    #expect(throws: ServerError.self) { try DraftFile(for: directory.file("pipe")) }
    try await expectFailure("make its folder", ["token", "add", "--tokens", directory.file("none/tokens"), "ann", "a:rw"])
    #expect(try names() == ["circle", "pipe"])
  }
}
