import Foundation
import LarderWire
import Testing

@testable import BoundedHTTP
@testable import LarderServer

@Suite(.timeLimit(.minutes(15))) struct GzipTests {
  private static let text = Data(String(repeating: #"{"n":1,"text":"spots and more spots"},"#, count: 2_000).utf8)

  @Test func whatIsPackedIsUnpackedAgain() throws {
    let packed = try #require(Gzip.packed(Self.text))
    #expect(packed.count < Self.text.count / 10)
    #expect(packed.prefix(2) == Data([0x1F, 0x8B]))
    #expect(try Gzip.unpacked(packed, limit: Self.text.count) == Self.text)
    // What chance has made has no shorter form.
    var random = SystemRandomNumberGenerator()
    #expect(Gzip.packed(Data((0..<5_000).map { _ in UInt8.random(in: 0...255, using: &random) })) == nil)
  }

  @Test func whatIsNotOneWholeGzipIsRefused() throws {
    let packed = try #require(Gzip.packed(Self.text))
    for wrong in [Data(), Data("{}".utf8), packed.dropLast(), packed.prefix(20), packed + packed, packed + Data([0]), packed.dropFirst()] {
      #expect {
        _ = try Gzip.unpacked(Data(wrong), limit: 1 << 20)
      } throws: { error in
        (error as? HTTPProblem)?.type == "urn:larder:problem:malformed"
      }
    }
  }

  @Test func aBombIsRefusedAtItsLimit() throws {
    let bomb = try #require(Gzip.packed(Data(count: 64 << 20)))
    #expect(bomb.count < 400_000)
    #expect(throws: HTTPProblem.tooLarge) { try Gzip.unpacked(bomb, limit: 1 << 20) }
    #expect(throws: HTTPProblem.tooLarge) { try Gzip.unpacked(bomb, limit: (64 << 20) - 1) }
    #expect(try Gzip.unpacked(bomb, limit: 64 << 20).count == 64 << 20)
  }

  @Test func acceptedEncodingsAreWeighed() {
    for (field, takes) in [
      (nil, false), ("", false), ("gzip", true), ("GZIP", true), ("x-gzip", true), ("br, gzip;q=0.5", true), ("gzip;q=0", false),
      ("*", true), ("*;q=0", false), ("*, gzip;q=0.0", false), ("gzip;q=0, *", false), ("identity", false),
      ("identity;q=1, gzip;q=0.5", false),
      ("gzip ; q=1.0 , identity ; q=0.5", true), ("deflate", false), ("gzip;q=nonsense", false), ("gzip;level=1;q=0", false),
      (",;,", false),
    ] as [(String?, Bool)] {
      #expect(AcceptedEncodings(field).takesGzip == takes, "\(field ?? "no field")")
    }
  }

  @Test func answersAndRequestsArePacked() async throws {
    var options = ServerOptions()
    options.bodyBytes = 100_000
    try await TestServer.run(options: options) { server in
      let value = #"{"text":"\#(String(repeating: "spots and more spots ", count: 500))"}"#
      let body = try #require(Gzip.packed(onePush(value: value).json))
      let headers = ["Content-Encoding": "gzip", "Content-Type": "application/json"]
      #expect(try await server.send("POST", "/v1/scopes/user%2F42/push", body: body, headers: headers).status == 200)
      let page = "GET /v1/scopes/user%2F42/changes HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(TestTokens.ann)\r\nConnection: close\r\n"
      let (packed, plain) = (try RawConnection(port: server.port), try RawConnection(port: server.port))
      await packed.send(page + "Accept-Encoding: gzip\r\n\r\n")
      await plain.send(page + "\r\n")
      let (short, long) = (await packed.readToEnd() ?? "", await plain.readToEnd() ?? "")
      #expect(short.lowercased().contains("content-encoding: gzip"))
      #expect(short.lowercased().contains("vary: accept-encoding"))
      #expect(!long.lowercased().contains("content-encoding"))
      #expect(long.contains("spots and more spots"))
      #expect(short.utf8.count < long.utf8.count / 3)
      // Small answers, and streams, stay as they are.
      for path in ["/healthz", "/v1/scopes/user%2F42/events"] {
        let small = try RawConnection(port: server.port)
        await small.send("GET \(path) HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(TestTokens.ann)\r\nAccept-Encoding: gzip\r\n\r\n")
        let head = await small.read(until: "\r\n\r\n")
        #expect(head.hasPrefix("HTTP/1.1 200 OK"))
        #expect(!head.lowercased().contains("content-encoding"))
      }
      let bomb = try #require(Gzip.packed(Data(count: 4 << 20)))
      #expect(try await server.send("POST", "/v1/scopes/user%2F42/push", body: bomb, headers: headers).status == 413)
      #expect(try await server.send("POST", "/v1/scopes/user%2F42/push", body: Data("{}".utf8), headers: headers).status == 400)
      // URLSession, which devices use, unpacks by itself.
      let answer = try await server.send("GET", "/v1/scopes/user%2F42/changes", headers: ["Accept-Encoding": "gzip"])
      #expect(try SyncChanges(json: answer.body).changes.count == 1)
    }
  }
}
