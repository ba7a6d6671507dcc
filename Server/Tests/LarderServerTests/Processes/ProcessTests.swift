import Foundation
import LarderSync
import Testing

@testable import LarderServer

@Suite(.timeLimit(.minutes(15))) struct ProcessTests {
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

  /// What a library says of a failure names neither the option nor the way out.
  @Test func aServerThatCannotBeginSaysWhatToDo() async throws {
    let directory = try TemporaryDirectory()
    let (store, tokens) = ("sqlite:\(directory.file("s"))", directory.file("tokens"))
    _ = try await ServerProcess.run(store, ["token", "add", "--tokens", tokens, "ann", "a:rw"])
    try Data("a letter, which is no database".utf8).write(to: URL(filePath: directory.file("letter")))
    let first = try await ServerProcess.start(store)
    let cases: [(store: String, arguments: [String], text: String)] = [
      (store, ["serve", "--insecure-no-auth", "--port", "\(first.port)"], "found \(first.port), at which another program listens"),
      (store, ["serve", "--tokens", tokens, "--host", "192.0.2.1", "--port", "0"], "expected an address of this machine for --host"),
      (
        store, ["serve", "--tokens", tokens, "--host", String(repeating: "a", count: 70), "--port", "0"],
        "or a name that leads to it, for --host"
      ),
      ("sqlite:/no/such/folder/s", ["serve", "--insecure-no-auth"], "expected the folder /no/such/folder/, found none: make it"),
      ("sqlite:\(directory.file(""))", ["serve", "--insecure-no-auth"], "found a folder: name a file in it"),
      ("sqlite:\(directory.file("letter"))", ["serve", "--insecure-no-auth"], "found a file of another kind: name another file"),
      ("sqlite:\(directory.file("none"))", ["doctor"], "found none: name the file that serve was given"),
      (store, ["sevre"], "Expected a command (serve, backup, restore, token, devices, scopes, purge, doctor), found 'sevre'."),
    ]
    for (store, arguments, text) in cases {
      let failure = await #expect(throws: ServerFailure.self, "\(arguments)") { try await ServerProcess.run(store, arguments) }
      let said = failure?.said ?? ""
      #expect(said.contains(text), "\(arguments): \(said)")
      for raw in ["errno", "descriptor", "SocketAddressError", "SQLite"] { #expect(!said.contains(raw), "\(arguments): \(said)") }
    }
    #expect(try await ServerProcess.run(store, ["--version"]) == "0.1.0\n")
    await first.end()
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
