internal import Foundation

/// An answer of HTTP/1.1 while it comes, in pieces that end anywhere.
struct HTTPResponseParser {
  private enum Part {
    case head
    /// A body of so many more bytes.
    case body(Int)
    case bodyUntilEnd
    case chunkSize
    case chunk(Int)
    /// The end of the line behind a chunk.
    case chunkEnd
    case trailer
    case complete
  }

  /// The status; `nil` before the head is there.
  private(set) var status: Int?
  /// The seconds of the header `Retry-After`.
  private(set) var retryAfter: Double?
  private var part = Part.head
  private var line: [UInt8] = []
  private var headBytes = 0
  private var length: Int?
  private var isChunked = false

  /// Whether a byte of the answer has come.
  private(set) var hasBegun = false
  /// Whether the server leaves the connection open, and has sent nothing behind the answer.
  private var staysOpen = true

  private static let headLimit = 64 << 10

  /// Whether the answer is there to its last byte, and another request may follow on the connection.
  var isPersistent: Bool { isComplete && staysOpen }

  /// Whether the answer is there to its last byte.
  var isComplete: Bool { if case .complete = part { true } else { false } }

  /// Takes the end of the connection.
  /// - Returns: Whether the answer may end there.
  mutating func end() -> Bool {
    staysOpen = false
    if case .bodyUntilEnd = part { part = .complete }
    return isComplete
  }

  /// Takes a piece of the connection.
  /// - Returns: The bytes of the body in it.
  /// - Throws: `.unreachable` for what is no answer of HTTP.
  mutating func take(_ bytes: UnsafeRawBufferPointer) throws(SyncProblem) -> Data {
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
        guard headBytes <= Self.headLimit else { throw Self.malformed }
        if byte == UInt8(ascii: "\n") { try endLine() } else { line.append(byte) }
      }
    }
    if position < bytes.count { staysOpen = false }
    return body
  }

  private static let malformed = SyncProblem.unreachable("the server does not answer in HTTP")

  private mutating func endLine() throws(SyncProblem) {
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    let text = String(decoding: line, as: UTF8.self)
    line = []
    switch part {
    case .head where status == nil: try takeStatus(text)
    case .head where text.isEmpty: try endHead()
    case .head: try takeField(text)
    case .chunkSize:
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
    if words[0] != "HTTP/1.1" { staysOpen = false }
  }

  private mutating func takeField(_ text: String) throws(SyncProblem) {
    guard let colon = text.firstIndex(of: ":") else { throw Self.malformed }
    let value = text[text.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    switch text[..<colon].lowercased() {
    case "content-length":
      guard let number = Int(value), number >= 0, length == nil || length == number else { throw Self.malformed }
      length = number
    case "transfer-encoding":
      isChunked = value.lowercased().hasSuffix("chunked")
      if value.lowercased() != "chunked" { staysOpen = false }
    case "connection": if value.lowercased().contains("close") { staysOpen = false }
    case "retry-after": retryAfter = Double(value)
    default: break
    }
  }

  private mutating func endHead() throws(SyncProblem) {
    guard let status else { throw Self.malformed }
    headBytes = 0
    // A proxy may see another end of an answer that gives two lengths, or a length and no body.
    if let length, isChunked || length != 0 && (status == 204 || status == 304) { staysOpen = false }
    if (100..<200).contains(status) {
      // The answer itself comes behind it.
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
