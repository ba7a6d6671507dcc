import Foundation
import Testing

/// A server that does not start must fail a test, and not hold it.
@Suite(.timeLimit(.minutes(15))) struct ServerProcessTests {
  @Test(arguments: ["false", "kill -9 $$"]) func aProgramThatEndsBeforeItServesHasNoLine(script: String) async throws {
    let server = try ServerProcess(URL(filePath: "/bin/sh"), ["-c", script])
    let line = try await server.firstLine()
    #expect(line.isEmpty)
    server.kill()
  }

  @Test func aServerTellsItsLineAndIsKilled() async throws {
    let server = try ServerProcess(URL(filePath: "/bin/sh"), ["-c", "echo at $$; exec tail -f /dev/null"])
    let line = try await server.firstLine()
    let number = try #require(line.firstMatch(of: /at (\d+)/).flatMap { Int32($0.1) })
    #expect(kill(number, 0) == 0)
    server.kill()
    #expect(kill(number, 0) == -1)
  }
}
