import Foundation
import Testing

@testable import LarderServer
@testable import larder_server

/// Names that commands of `larder-server` are given, and addresses that they print.
@Suite(.timeLimit(.minutes(15))) struct CommandSelectionTests {
  @Test func namesOfNothingAreSaid() async throws {
    let directory = try TemporaryDirectory()
    let place = "sqlite:\(directory.file("s"))"
    let store = try await SQLSyncStore.open(sqlite: directory.file("s"), logger: LogLines().logger())
    _ = try await store.push(onePush(), to: "team", by: "ann")
    await store.close()
    for arguments in [
      ["purge", "--scope", "tea"], ["devices", "list", "--identity", "nobody"],
      ["devices", "forget", "--days", "1", "--identity", "nobody"], ["devices", "forget", "--days", "1", "--device", "d9"],
      ["devices", "move", "nobody", "ann"],
    ] {
      let failure = await #expect(throws: ServerFailure.self, "\(arguments)") { try await ServerProcess.run(place, arguments) }
      #expect(failure?.said.contains("look at 'larder-server") == true, "\(arguments): \(failure?.said ?? "")")
    }
    #expect(try await ServerProcess.run(place, ["purge", "--scope", "team"]) == "0 deletions forgotten\n")
    #expect(try await ServerProcess.run(place, ["devices", "forget", "--days", "1", "--identity", "ann"]) == "0 devices forgotten\n")
    #expect(try await ServerProcess.run(place, ["devices", "list", "--identity", "ann", "--behind"]) == "")
    // A minimum may be set before the first record comes.
    #expect(try await ServerProcess.run(place, ["scopes", "--scope", "team", "--minimum", "3"]) == "")
    let said = try await ServerProcess.run(place, ["scopes", "--scope", "tea", "--minimum", "3"])
    #expect(said == "nobody has written 'tea' yet: it takes records of schema version 3 or above, once there are any\n")
  }

  @Test(arguments: [
    ("127.0.0.1", false, "http://127.0.0.1:80"), ("localhost", true, "https://localhost:80"), ("::1", false, "http://[::1]:80"),
    ("fe80::1", true, "https://[fe80::1]:80"),
  ]) func theAddressIsAURL(_ host: String, _ isSecure: Bool, _ url: String) {
    #expect(Serve.url(host: host, port: 80, isSecure: isSecure) == url)
  }

  @Test(arguments: [
    (["--max-streams", "0"], "Expected 1 or more for --max-streams, found 0."), (["--rate", "nan"], "--rate, found nan"),
    (["--burst", "0.5"], "--burst, found 0.5"), (["--idle-timeout", "-1"], "--idle-timeout, found -1"),
    (["--drain", "-1"], "Expected 0 or more for --drain, found -1."),
  ]) func aLimitOutOfBoundsIsNamed(_ arguments: [String], _ words: String) async throws {
    let options = arguments.count == 2 ? ["\(arguments[0])=\(arguments[1])"] : arguments
    let failure = await #expect(throws: ServerFailure.self) {
      try await ServerProcess.run("sqlite:/nowhere/s", ["serve", "--insecure-no-auth"] + options)
    }
    #expect(failure?.said.contains(words) == true, "\(failure?.said ?? "")")
  }
}
