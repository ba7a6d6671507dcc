internal import Crypto
internal import Foundation

/// The lines of a token file: the SHA-256 of a token in hexadecimal digits, an identity, a pattern of scopes, and `r`, `w` or `rw`.
public struct TokenTable: Sendable, Hashable {
  /// A line.
  public struct Line: Sendable, Hashable {
    /// The SHA-256 of the token.
    public var digest: [UInt8]
    /// The name of the identity.
    public var identity: String
    /// The rights.
    public var grant: ScopeGrant

    /// Makes a line.
    public init(digest: [UInt8], identity: String, grant: ScopeGrant) {
      (self.digest, self.identity, self.grant) = (digest, identity, grant)
    }

    /// The line as text.
    public var text: String {
      digest.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        + " \(identity) \(grant.pattern) \(grant.access.text)"
    }
  }

  /// The lines, in their order.
  public private(set) var lines: [Line] = []
  private var rows: [UInt64: [Int]] = [:]

  /// Makes a table.
  public init(_ lines: [Line]) {
    self.lines = lines
    for (index, line) in lines.enumerated() { rows[Self.bucket(line.digest), default: []].append(index) }
  }

  /// Reads a file's text; empty lines and those that begin with `#` are left out.
  ///
  /// - Throws: ``ServerError``, naming the line.
  public init(_ text: String) throws(ServerError) {
    var lines: [Line] = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let words = line.split(whereSeparator: \.isWhitespace)
      if words.isEmpty || words[0].hasPrefix("#") { continue }
      guard words.count == 4, let digest = Self.digest(words[0]), let access = ScopeAccess(words[3]) else {
        throw ServerError(
          expected: "'SHA-256 IDENTITY PATTERN r|w|rw' in line \(index + 1) of the token file",
          found: "\(words.count) words of another form",
          advice: "correct the line, or make lines with 'larder-server token add'")
      }
      lines.append(Line(digest: digest, identity: String(words[1]), grant: ScopeGrant(String(words[2]), access)))
    }
    self.init(lines)
  }

  /// The table as the text of a file.
  public var text: String { lines.map { $0.text + "\n" }.joined() }

  /// Returns the SHA-256 of a token.
  public static func digest(ofToken token: String) -> [UInt8] { Array(SHA256.hash(data: Data(token.utf8))) }

  private static func digest(_ text: Substring) -> [UInt8]? {
    let digits = text.compactMap(\.hexDigitValue).map(UInt8.init)
    guard text.count == 64, digits.count == 64 else { return nil }
    return stride(from: 0, to: 64, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  private static func bucket(_ digest: [UInt8]) -> UInt64 { digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }

  /// Returns the identity of a token; `nil` where no line has it.
  ///
  /// Lines are found by the beginning of a hash, which says nothing of the token, and are compared in constant time.
  func identity(ofToken token: String) -> Identity? {
    let digest = Self.digest(ofToken: token)
    let found = (rows[Self.bucket(digest)] ?? []).map { lines[$0] }.filter { Self.areEqual($0.digest, digest) }
    guard let first = found.first else { return nil }
    return Identity(first.identity, grants: found.map(\.grant))
  }

  private static func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    one.count == other.count && zip(one, other).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
