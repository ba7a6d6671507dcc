internal import Crypto
internal import Foundation

/// Contents of a token file.
///
/// Each line has the SHA-256 of a token in hexadecimal digits, an identity, a pattern of scopes, and `r`, `w` or `rw`.
public struct TokenTable: Sendable, Hashable {
  /// Line of a token file: one grant for one token.
  public struct Line: Sendable, Hashable {
    /// SHA-256 of the token.
    public var digest: [UInt8]
    /// Name of the identity that the token belongs to.
    public var identity: String
    /// Rights that the line grants.
    public var grant: ScopeGrant

    /// Creates a line.
    public init(digest: [UInt8], identity: String, grant: ScopeGrant) {
      (self.digest, self.identity, self.grant) = (digest, identity, grant)
    }

    /// Line as it is written to the file.
    public var text: String {
      digest.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        + " \(identity) \(grant.pattern) \(grant.access.text)"
    }
  }

  /// Lines in the order of the file.
  public private(set) var lines: [Line] = []
  private var rows: [UInt64: [Int]] = [:]

  /// Creates a table.
  public init(_ lines: [Line]) {
    self.lines = lines
    for (index, line) in lines.enumerated() { rows[Self.bucket(line.digest), default: []].append(index) }
  }

  /// Parses the text of a token file, and skips empty lines and lines that begin with `#`.
  ///
  /// - Throws: ``ServerError`` that names a malformed line.
  public init(_ text: String) throws(ServerError) {
    var lines: [Line] = []
    // The line break of Windows, "\r\n", is one character of Swift, and does not equal "\n". In a file with such line breaks, a first line
    // that is a comment would hide all tokens.
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: { $0 == "\n" || $0 == "\r\n" }).enumerated() {
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

  /// Checks that no token has two identities.
  ///
  /// The first identity would get the grants of both, and the second could never write.
  /// - Throws: ``ServerError`` with the hash of such a token.
  func checkIdentities() throws(ServerError) {
    var identities: [[UInt8]: String] = [:]
    for line in lines {
      let first = identities[line.digest, default: line.identity]
      // Not as strings, of which two with other bytes may be equal.
      guard first.utf8.elementsEqual(line.identity.utf8) else {
        throw ServerError(
          expected: "one identity for each token in the token file", found: "two for \(line.text.prefix(12))",
          advice: "revoke it with 'larder-server token revoke', and make another with 'larder-server token add'")
      }
      identities[line.digest] = first
    }
  }

  /// Table as the text of a file.
  public var text: String { lines.map { $0.text + "\n" }.joined() }

  /// Returns the SHA-256 of a token.
  public static func digest(ofToken token: String) -> [UInt8] { Array(SHA256.hash(data: Data(token.utf8))) }

  private static func digest(_ text: Substring) -> [UInt8]? {
    let digits = text.compactMap(\.hexDigitValue).map(UInt8.init)
    // `compactMap` drops characters that are no digits, so the length of the text is compared, too.
    guard text.count == 64, digits.count == 64 else { return nil }
    return stride(from: 0, to: 64, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  private static func bucket(_ digest: [UInt8]) -> UInt64 { digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }

  /// Returns the identity of a token, or `nil` if no line has its hash.
  ///
  /// Lines are found by the first 8 bytes of the hash, which reveal nothing of the token, and are then compared in constant time.
  func identity(ofToken token: String) -> Identity? {
    let digest = Self.digest(ofToken: token)
    let found = (rows[Self.bucket(digest)] ?? []).map { lines[$0] }.filter { Self.areEqual($0.digest, digest) }
    guard let first = found.first else { return nil }
    return Identity(first.identity, grants: found.map(\.grant))
  }

  private static func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    // Reads all bytes: a comparison that stops at the first difference would reveal the stored hash by its duration.
    one.count == other.count && zip(one, other).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
