import Foundation
import Larder
import Testing
import WeatherSpotsKit

@testable import BoundedHTTP
@testable import WeatherSpotsWeb

@Suite(.timeLimit(.minutes(15))) struct WebLimitsTests {
  private static let put = "PUT /api/spots/x HTTP/1.1\r\nHost: localhost\r\nIf-Match: \"1\"\r\n"

  @Test func whatIsTooLargeIsRefusedBeforeItIsRead() async throws {
    try await TestWeb.run { web in
      #expect(try await web.answer(to: Self.put + "Content-Length: 1000000000\r\n\r\n").hasPrefix("HTTP/1.1 413 "))
      let piece = String(repeating: "x", count: 40_000)
      let chunk = String(piece.utf8.count, radix: 16) + "\r\n" + piece + "\r\n"
      let sent = try await web.answer(to: Self.put + "Transfer-Encoding: chunked\r\n\r\n" + chunk + chunk)
      #expect(sent.hasPrefix("HTTP/1.1 413 "))
      let head = try await web.answer(to: "GET / HTTP/1.1\r\nHost: localhost\r\nX: \(String(repeating: "x", count: 40_000))\r\n\r\n")
      #expect(head.hasPrefix("HTTP/1.1 4"))
      #expect(head.contains("application/problem+json"))
      let path = try await web.answer(to: "GET /api/spots/\(String(repeating: "x", count: 100_000)) HTTP/1.1\r\nHost: localhost\r\n\r\n")
      #expect(path.hasPrefix("HTTP/1.1 4"))
    }
  }

  @Test func whatIsNoRequestIsAProblem() async throws {
    try await TestWeb.run { web in
      for text in [
        "nonsense\r\n\r\n", "GET / HTTP/3.0\r\n\r\n", "GET / HTTP/1.1\nHost localhost\r\n\r\n",
        "BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
      ] {
        let answer = try await web.answer(to: text)
        #expect(answer.hasPrefix("HTTP/1.1 4"), "\(text)")
      }
    }
  }

  @Test func bodiesInGzipAreBoundedByWhatTheyUnpackTo() async throws {
    let bomb = try #require(Gzip.packed(Data(repeating: 0x20, count: 32 << 20)))
    try #require(bomb.count < 64 << 10)
    try await TestWeb.run { web in
      let head = Self.put + "Content-Encoding: gzip\r\nConnection: close\r\nContent-Length: \(bomb.count)\r\n\r\n"
      #expect(try await web.answer(to: head, bomb).hasPrefix("HTTP/1.1 413 "))
      let answer = try await web.send("PUT", "/api/spots/x", body: "{}", headers: ["If-Match": "\"1\"", "Content-Encoding": "br"])
      #expect(answer.status == 415)
      #expect(answer.json["title"]?.stringValue == "Unsupported Media Type")
    }
  }

  @Test func answersThatAreKeptAreBounded() async throws {
    let spots = try (0..<1_000).map { number in
      try Spot(name: "Spot \(number)", latitude: 1, longitude: 2, timezone: "GMT", notes: String(repeating: "\(number) ", count: 200))
    }
    try await TestWeb.run(spots: spots) { web in
      // One of each question, whatever else stands in it; and of questions not more than a few megabytes.
      for number in 0..<5 { _ = try await web.get("/api/spots?x=\(number)") }
      let one = try #require(try await kept(web))
      #expect(one < 2_000_000)
      for number in 1..<60 { _ = try await web.get("/api/spots?limit=\(1_000 - number)") }
      #expect(try #require(try await kept(web)) <= 16 << 20)
    }
  }

  private func kept(_ web: TestWeb) async throws -> Int? {
    try await web.get("/metrics").text.firstMatch(of: /weather_spots_bytes_kept (\d+)/).flatMap { Int($0.1) }
  }

  @Test func answersArePackedForThoseWhoTakeThat() async throws {
    try await TestWeb.run { web in
      let connection = try await RawConnection.open(web.port)
      try await connection.write("GET /app.js HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n")
      let head = try await connection.read(until: "\r\n\r\n")
      #expect(head.lowercased().contains("content-encoding: gzip"))
      #expect(head.lowercased().contains("vary: accept-encoding"))
    }
  }

  @Test func numbersAreToldForPrometheus() async throws {
    try await TestWeb.run { web in
      _ = try await web.get("/api/spots")
      let text = try await web.get("/metrics").text
      #expect(text.contains(#"weather_spots_requests_total{route="/api/spots",method="GET",status="200"} 1"#))
      #expect(text.contains("weather_spots_spots 5"))
      #expect(text.contains("weather_spots_request_seconds_bucket{route=\"/api/spots\",le=\"+Inf\"} 1"))
    }
  }
}
