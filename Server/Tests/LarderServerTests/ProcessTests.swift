import Foundation
import LarderSync
import Testing

@testable import LarderServer

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(2))) struct ProcessTests {
  /// A `larder-server` in a process of its own.
  private struct Running {
    let process: Process
    let port: Int

    static func start(_ store: String) throws -> Running {
      let process = Process()
      let output = Pipe()
      process.executableURL = URL(fileURLWithPath: BuiltPrograms.larderServer)
      process.arguments = ["serve", "--store", "sqlite:\(store)", "--port", "0", "--insecure-no-auth", "--burst", "100000"]
      (process.standardOutput, process.standardError) = (output, FileHandle.nullDevice)
      try process.run()
      // The one line of stdout comes when the server takes requests.
      let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
      let port = Int(line.split(separator: ":").last.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) } ?? "") ?? 0
      return Running(process: process, port: port)
    }

    func send(_ push: SyncPush) async throws -> SyncPushReply {
      guard let url = URL(string: "http://127.0.0.1:\(port)/v1/scopes/a/push") else { throw URLError(.badURL) }
      var request = URLRequest(url: url)
      (request.httpMethod, request.httpBody) = ("POST", push.json)
      return try SyncPushReply(json: try await URLSession.shared.data(for: request).0)
    }
  }

  @Test func whatWasAnsweredIsThereAfterAKill() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("s")
    var answered: [String: Int] = [:]
    for round in 1...3 {
      let server = try Running.start(path)
      let found = await withTaskGroup(of: (String, Int).self) { group in
        for number in 0..<4 {
          let device = "d\(round)-\(number)"
          group.addTask {
            var last = 0
            // Goes on until the process is killed.
            while let reply = try? await server.send(onePush(device: device, seq: last + 1, id: "\(device)-\(last)")) {
              last = reply.receipt.seq
              if device.hasSuffix("-0"), last == 20 { kill(server.process.processIdentifier, SIGKILL) }
            }
            return (device, last)
          }
        }
        return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
      }
      answered.merge(found) { $1 }
      server.process.waitUntilExit()
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

  @Test func aSignalEndsTheServerAndItsStreams() async throws {
    let directory = try TemporaryDirectory()
    let server = try Running.start(directory.file("s"))
    let (lines, _) = try EventReader.open("http://127.0.0.1:\(server.port)/v1/scopes/a/events", token: "-")
    var iterator = lines.makeAsyncIterator()
    #expect(await iterator.next() == "id: 0")
    server.process.terminate()
    while await iterator.next() != nil {}
    server.process.waitUntilExit()
    #expect(server.process.terminationStatus == 0)
  }
}
