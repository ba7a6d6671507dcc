import Foundation
import Testing

@testable import LarderServer

/// The server over TLS, asked by curl.
@Suite(.timeLimit(.minutes(15)), .enabled(if: Command.openssl != nil && Command.curl != nil, "openssl or curl is missing"))
struct TLSTests {
  private static func ask(_ port: Int, trusting certificate: String, _ options: [String] = []) async throws -> (
    status: Int32, output: String
  ) {
    try await Command.run(
      Command.curl, ["-sS", "--noproxy", "*", "--cacert", certificate, "https://localhost:\(port)/healthz"] + options)
  }

  @Test func aCertificateInFilesIsUsedAndRenewed() async throws {
    let directory = try TemporaryDirectory()
    let (certificate, key) = (directory.file("certificate"), directory.file("key"))
    try await TestCertificate.make(certificate, key)
    let (first, logs) = (directory.file("first"), LogLines())
    try FileManager.default.copyItem(atPath: certificate, toPath: first)
    let files = try TLSFiles(certificate: certificate, key: key, logger: logs.logger())
    try await TestServer.run(in: directory, tls: files) { server in
      let answer = try await Self.ask(server.port, trusting: first)
      #expect(answer == (0, "ok\n"))
      #expect(try await Self.ask(server.port, trusting: first, ["--tls-max", "1.1", "--tlsv1.0"]).status != 0)
      // Another certificate whose key is not there yet changes nothing.
      let (next, nextKey) = (directory.file("next"), directory.file("next-key"))
      try await TestCertificate.make(next, nextKey)
      try FileManager.default.removeItem(atPath: certificate)
      try FileManager.default.copyItem(atPath: next, toPath: certificate)
      await files.renew()
      #expect(try await Self.ask(server.port, trusting: first).status == 0)
      #expect(logs.text.contains("the certificate was not taken"))
      try FileManager.default.removeItem(atPath: key)
      try FileManager.default.copyItem(atPath: nextKey, toPath: key)
      await files.renew()
      #expect(try await Self.ask(server.port, trusting: next).output == "ok\n")
      #expect(try await Self.ask(server.port, trusting: first).status != 0)
    }
    #expect(!logs.text.contains("PRIVATE KEY"))
  }

  /// Events are written past what makes answers: they must not be written past what makes them secret.
  @Test func eventsComeOverTLS() async throws {
    let directory = try TemporaryDirectory()
    let (certificate, key) = (directory.file("certificate"), directory.file("key"))
    try await TestCertificate.make(certificate, key)
    let files = try TLSFiles(certificate: certificate, key: key, logger: LogLines().logger())
    let output = try LinePipe()
    var reader: ChildProcess?
    try await TestServer.run(in: directory, tls: files, watch: .milliseconds(20)) { server in
      reader = try ChildProcess(
        try #require(Command.curl),
        [
          "-sSN", "--noproxy", "*", "--cacert", certificate, "-H", "Authorization: Bearer \(TestTokens.ann)",
          "https://localhost:\(server.port)/v1/scopes/user%2F42/events",
        ], output: output.input)
      close(output.input)
      var lines = output.lines.makeAsyncIterator()
      while let line = await lines.next(isolation: #isolation), line.text != #"data: {"head":0}"# {}
      for seq in 1...3 {
        _ = try await server.store.push(onePush(seq: seq, id: "r\(seq)"), to: "user/42", by: "ann")
        while let line = await lines.next(isolation: #isolation) {
          if line.text == #"data: {"head":\#(seq)}"# { break }
          #expect(line.text.isEmpty || line.text == ":" || line.text == "id: \(seq)" || line.text == "event: head")
        }
      }
    }
    // The stream ends with the server as an answer does.
    #expect(await reader?.end() == 0)
  }

  @Test func filesThatAreNoCertificateAreRefused() async throws {
    let directory = try TemporaryDirectory()
    let (certificate, key) = (directory.file("certificate"), directory.file("key"))
    #expect(throws: ServerError.self) { try TLSFiles(certificate: certificate, key: key, logger: LogLines().logger()) }
    try await TestCertificate.make(certificate, key)
    #expect(throws: ServerError.self) { try TLSFiles(certificate: key, key: certificate, logger: LogLines().logger()) }
    _ = try TLSFiles(certificate: certificate, key: key, logger: LogLines().logger())
  }

  @Test func aHandshakeThatDoesNotComeEndsTheConnection() async throws {
    let directory = try TemporaryDirectory()
    try await TestCertificate.make(directory.file("certificate"), directory.file("key"))
    let files = try TLSFiles(certificate: directory.file("certificate"), key: directory.file("key"), logger: LogLines().logger())
    var options = ServerOptions()
    (options.headSeconds, options.idleSeconds) = (1, 3_600)
    try await TestServer.run(in: directory, options: options, tls: files) { server in
      let (silent, plain) = (try RawConnection(port: server.port), try RawConnection(port: server.port))
      await plain.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(await silent.readToEnd() != nil)
      #expect(await plain.readToEnd()?.contains("ok") == false)
    }
  }
}
