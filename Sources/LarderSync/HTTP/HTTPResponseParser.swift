internal import Foundation
internal import LarderWire

/// An incremental parser of an HTTP/1.1 response, whose bytes may arrive in pieces of any size.
struct HTTPResponseParser {
  private enum Part {
    case head
    /// A body with a `Content-Length`, of which the associated number of bytes is still to be received.
    case body(Int)
    /// A body without a length, which ends when the connection ends.
    case bodyUntilEnd
    case chunkSize
    case chunk(Int)
    /// The line end that follows the bytes of a chunk.
    case chunkEnd
    case trailer
    case complete
  }

  /// Status code of the response, or `nil` before its status line was received.
  private(set) var status: Int?
  /// Seconds in the header `Retry-After`, or `nil` without that header.
  private(set) var retryAfter: Double?
  private var part = Part.head
  private var line: [UInt8] = []
  private var headBytes = 0
  private var length: Int?
  private var isChunked = false

  /// True if a byte of the response was received.
  private(set) var hasBegun = false
  /// True until a header or a byte after the response shows that the connection cannot carry another request.
  private var staysOpen = true

  private static let headLimit = 64 << 10

  /// True if the response is complete and the connection may carry another request.
  var isPersistent: Bool { isComplete && staysOpen }

  /// True if the response is complete.
  var isComplete: Bool { if case .complete = part { true } else { false } }

  /// Processes the end of the connection over which the response comes.
  ///
  /// - Returns: Whether the response is complete at the end of the connection.
  mutating func end() -> Bool {
    staysOpen = false
    // The end of the connection completes only a body without a length and without chunks. If the connection ends within any other body,
    // the body is incomplete.
    if case .bodyUntilEnd = part { part = .complete }
    return isComplete
  }

  /// Processes received bytes of the response.
  ///
  /// - Returns: The bytes of the response's body among the received bytes.
  /// - Throws: `.unreachable` for bytes that are no HTTP response.
  mutating func consume(_ bytes: UnsafeRawBufferPointer) throws(SyncProblem) -> Data {
    var body = Data()
    var position = 0
    hasBegun = hasBegun || !bytes.isEmpty
    while position < bytes.count, !isComplete {
      switch part {
      case .body(let left), .chunk(let left):
        let count = min(left, bytes.count - position)
        body.append(contentsOf: bytes[position..<position + count])
        position += count
        if case .body = part {
          part = left == count ? .complete : .body(left - count)
        } else {
          part = left == count ? .chunkEnd : .chunk(left - count)
        }
      case .bodyUntilEnd:
        body.append(contentsOf: bytes[position...])
        position = bytes.count
      case .head, .chunkSize, .chunkEnd, .trailer, .complete:
        let byte = bytes[position]
        position += 1
        headBytes += 1
        // The bytes of trailers and chunk sizes count against the limit like those of headers, since a server could send them without an
        // end.
        guard headBytes <= Self.headLimit else { throw Self.malformed }
        if byte == UInt8(ascii: "\n") { try endLine() } else { line.append(byte) }
      }
    }
    // Bytes after the response belong to no request. On a reused connection, they would be read as the next response.
    if position < bytes.count { staysOpen = false }
    return body
  }

  private static let malformed = SyncProblem.unreachable("the server does not answer in HTTP")

  private mutating func endLine() throws(SyncProblem) {
    // RFC 9112 lets a recipient accept a single LF as a line end.
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    let text = String(decoding: line, as: UTF8.self)
    line = []
    switch part {
    case .head where status == nil: try takeStatus(text)
    case .head where text.isEmpty: try endHead()
    case .head: try takeField(text)
    case .chunkSize:
      // Only the leading hexadecimal digits are read, since a chunk extension may follow the chunk's size.
      guard let size = Int(text.prefix { $0.isHexDigit }, radix: 16) else { throw Self.malformed }
      headBytes = 0
      part = size == 0 ? .trailer : .chunk(size)
    case .chunkEnd:
      guard text.isEmpty else { throw Self.malformed }
      part = .chunkSize
    case .trailer: if text.isEmpty { part = .complete }
    case .body, .bodyUntilEnd, .chunk, .complete: break
    }
  }

  private mutating func takeStatus(_ text: String) throws(SyncProblem) {
    let words = text.split(separator: " ", maxSplits: 2)
    guard words.count >= 2, words[0].hasPrefix("HTTP/1."), words[1].utf8.count == 3, let number = Int(words[1]) else {
      throw Self.malformed
    }
    status = number
    // A server of HTTP/1.0 closes the connection after its response by default.
    if words[0] != "HTTP/1.1" { staysOpen = false }
  }

  private mutating func takeField(_ text: String) throws(SyncProblem) {
    guard let colon = text.firstIndex(of: ":") else { throw Self.malformed }
    let value = text[text.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    switch text[..<colon].lowercased() {
    case "content-length":
      // A response with two different lengths is refused, since a proxy may use the other length and end the response at another byte.
      guard let number = Int(value), number >= 0, length == nil || length == number else { throw Self.malformed }
      length = number
    case "transfer-encoding":
      isChunked = value.lowercased().hasSuffix("chunked")
      // With another transfer coding, the end of the body is not certain, so the connection is not used again.
      if value.lowercased() != "chunked" { staysOpen = false }
    case "connection": if value.lowercased().contains("close") { staysOpen = false }
    case "retry-after": retryAfter = Double(value)
    default: break
    }
  }

  private mutating func endHead() throws(SyncProblem) {
    guard let status else { throw Self.malformed }
    headBytes = 0
    let hasNoBody = status == 204 || status == 304
    // For a proxy, a response with a length and chunks (RFC 9112, 6.3), or with a length or chunks and no body, may end at another byte.
    // After such a response, the connection is not used again.
    if length.map({ isChunked || $0 != 0 && hasNoBody }) ?? (isChunked && hasNoBody) { staysOpen = false }
    if (100..<200).contains(status) {
      // An interim response such as 100 comes before the final response, so the parser begins again with the next status line.
      (self.status, length, isChunked) = (nil, nil, false)
    } else if hasNoBody || length == 0 && !isChunked {
      part = .complete
    } else if isChunked {
      part = .chunkSize
    } else if let length {
      part = .body(length)
    } else {
      part = .bodyUntilEnd
    }
  }
}
