import Foundation
import LarderSync
import Testing

@testable import LarderServer

@Suite(.timeLimit(.minutes(2))) struct ProcessTests {
  @Test func whatWasAnsweredIsThereAfterAKill() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("s")
    var answered: [String: Int] = [:]
    for round in 1...3 {
      let server = try await ServerProcess.start("sqlite:\(path)")
      let transport = try server.transport()
      let found = await withTaskGroup(of: (String, Int).self) { group in
        for number in 0..<4 {
          let device = "d\(round)-\(number)"
          group.addTask {
            var last = 0
            // Goes on until the process is killed.
            while let reply = try? await transport.push(onePush(device: device, seq: last + 1, id: "\(device)-\(last)"), to: "a") {
              last = reply.receipt.seq
              if device.hasSuffix("-0"), last == 20 { server.process.send(SIGKILL) }
            }
            return (device, last)
          }
        }
        return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
      }
      answered.merge(found) { $1 }
      await server.end(SIGKILL)
    }
    let store = try await SQLSyncStore.open(sqlite: path, logger: LogLines().logger())
    let findings = try await store.doctor().findings
    #expect(findings.isEmpty)
    let rounds = (1...3).map { answered["d\($0)-0"] ?? 0 }
    #expect(rounds == [20, 20, 20])
    for (device, last) in answered {
      let seq = try await store.changes(SyncChangesRequest(device: device, since: 1 << 40), in: "a", by: "anyone").last?.seq ?? 0
      // One push more may have been made durable, whose answer the kill has cut off.
      #expect(seq == last || seq == last + 1)
    }
    await store.close()
  }

  /// A server on which everybody may do everything is reached from its own machine alone.
  @Test func aServerWithoutTokensListensOnlyAtLoopback() async throws {
    let directory = try TemporaryDirectory()
    let store = "sqlite:\(directory.file("s"))"
    for host in ["0.0.0.0", "::", "192.168.1.1", "example.org", "127.0.0.1.example.org", "127.1", "127.0.0.256", ""] {
      let failure = await #expect(throws: ServerFailure.self, "\(host)") {
        try await ServerProcess.run(store, ["serve", "--insecure-no-auth", "--port", "0", "--host", host])
      }
      #expect(failure?.said.contains("expected 127.0.0.1, ::1 or localhost for --host, found '\(host)'") == true, "\(host)")
    }
    for host in ["127.0.0.1", "127.0.0.2", "localhost"] {
      let server = try await ServerProcess.start(store, ["--host", host])
      await server.end()
    }
  }

  @Test func aSignalEndsTheServerAndItsStreams() async throws {
    let directory = try TemporaryDirectory()
    let server = try await ServerProcess.start("sqlite:\(directory.file("s"))")
    let (lines, _) = try EventReader.open("http://127.0.0.1:\(server.port)/v1/scopes/a/events", token: "-")
    var iterator = lines.makeAsyncIterator()
    #expect(await iterator.next() == "id: 0")
    server.process.send(SIGTERM)
    while await iterator.next() != nil {}
    #expect(await server.end() == 0)
  }
}
