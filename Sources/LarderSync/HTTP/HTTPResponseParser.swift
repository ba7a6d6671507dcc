internal import Foundation
internal import LarderWire

/// An incremental parser of an HTTP/1.1 response, whose pieces may end anywhere.
struct HTTPResponseParser {
  private enum Part {
    case head
    /// A body with this number of bytes left.
    case body(Int)
    /// A body without a length, which ends with the connection.
    case bodyUntilEnd
    case chunkSize
    case chunk(Int)
    /// The line end after a chunk.
    case chunkEnd
    case trailer
    case complete
  }

  /// Status code, or `nil` before the head is complete.
  private(set) var status: Int?
  /// Seconds in the header `Retry-After`.
  private(set) var retryAfter: Double?
  private var part = Part.head
  private var line: [UInt8] = []
  private var headBytes = 0
  private var length: Int?
  private var isChunked = false

  /// True if a byte of the response was received.
  private(set) var hasBegun = false
  /// True if the server keeps the connection open and has sent nothing after the response.
  private var staysOpen = true

  private static let headLimit = 64 << 10

  /// True if the response is complete and the connection may carry another request.
  var isPersistent: Bool { isComplete && staysOpen }

  /// True if the response is complete.
  var isComplete: Bool { if case .complete = part { true } else { false } }

  /// Processes the end of the connection.
  ///
  /// - Returns: Whether the response may end there.
  mutating func end() -> Bool {
    staysOpen = false
    // A body with a length or in chunks that ends early is cut off, and not complete.
    if case .bodyUntilEnd = part { part = .complete }
    return isComplete
  }

  /// Processes received bytes.
  ///
  /// - Returns: The bytes of the body among them.
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
        // Trailers and chunk lines count as well: a server could send headers without an end.
        guard headBytes <= Self.headLimit else { throw Self.malformed }
        if byte == UInt8(ascii: "\n") { try endLine() } else { line.append(byte) }
      }
    }
    // Bytes after the response belong to no request, and would be read as the next response.
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
      // A chunk extension may follow the size.
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
    // HTTP/1.0 closes the connection by default.
    if words[0] != "HTTP/1.1" { staysOpen = false }
  }

  private mutating func takeField(_ text: String) throws(SyncProblem) {
    guard let colon = text.firstIndex(of: ":") else { throw Self.malformed }
    let value = text[text.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    switch text[..<colon].lowercased() {
    case "content-length":
      // A proxy may have used the other of two different lengths, and end the response elsewhere.
      guard let number = Int(value), number >= 0, length == nil || length == number else { throw Self.malformed }
      length = number
    case "transfer-encoding":
      isChunked = value.lowercased().hasSuffix("chunked")
      // With another coding, the end of the body is not certain.
      if value.lowercased() != "chunked" { staysOpen = false }
    case "connection": if value.lowercased().contains("close") { staysOpen = false }
    case "retry-after": retryAfter = Double(value)
    default: break
    }
  }

  private mutating func endHead() throws(SyncProblem) {
    guard let status else { throw Self.malformed }
    headBytes = 0
    // A proxy may end a response elsewhere if it has a length and chunks (RFC 9112, 6.3), or a length and no body.
    if let length, isChunked || length != 0 && (status == 204 || status == 304) { staysOpen = false }
    if (100..<200).contains(status) {
      // An interim response such as 100 comes before the final one.
      (self.status, length, isChunked) = (nil, nil, false)
    } else if status == 204 || status == 304 || length == 0, !isChunked {
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
