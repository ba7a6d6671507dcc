import Foundation
import Testing

@testable import LarderSync

/// Where a response ends, and whether its connection carries the next one.
@Suite struct HTTPResponseParserTests {
  /// Reads a response that comes whole, or byte by byte.
  private func read(_ text: String, inPieces: Bool) throws -> (parser: HTTPResponseParser, body: Data) {
    var parser = HTTPResponseParser()
    var body = Data()
    for piece in inPieces ? text.utf8.map({ [$0] }) : [Array(text.utf8)] {
      body += try piece.withUnsafeBytes { try parser.consume($0) }
    }
    return (parser, body)
  }

  /// RFC 9112, 6.3: neither has a body, whatever its header says.
  @Test(arguments: [204, 304], [true, false]) func aStatusWithoutABodyEndsWithItsHead(status: Int, inPieces: Bool) throws {
    for (fields, isPersistent) in [
      ("", true), ("Content-Length: 0\r\n", true), ("Content-Length: 5\r\n", false), ("Transfer-Encoding: chunked\r\n", false),
      ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", false),
    ] {
      let (parser, body) = try read("HTTP/1.1 \(status) x\r\n\(fields)\r\n", inPieces: inPieces)
      #expect(parser.isComplete && parser.status == status && body.isEmpty, "\(fields)")
      #expect(parser.isPersistent == isPersistent, "\(fields)")
    }
  }

  @Test(arguments: [true, false]) func otherResponsesEndWithTheirBody(inPieces: Bool) throws {
    for (fields, body, isPersistent) in [
      ("Content-Length: 2\r\n", "ab", true), ("Transfer-Encoding: chunked\r\n", "1\r\na\r\n1;x\r\nb\r\n0\r\n\r\n", true),
      ("Transfer-Encoding: chunked\r\nContent-Length: 9\r\n", "2\r\nab\r\n0\r\n\r\n", false),
    ] {
      let found = try read("HTTP/1.1 200 OK\r\n\(fields)\r\n\(body)", inPieces: inPieces)
      #expect(found.parser.isComplete && found.body == Data("ab".utf8), "\(fields)")
      #expect(found.parser.isPersistent == isPersistent, "\(fields)")
    }
    #expect(try !read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", inPieces: inPieces).parser.isComplete)
  }
}
