import Foundation
public import Larder

extension PageCursor {
  /// The cursor as a word without blanks, for the command line.
  public var token: String {
    get throws {
      let encoder = JSONEncoder()
      // Without sorted keys one cursor could have several tokens.
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      // No character of base64url has a meaning in a shell, so the token needs no quoting.
      return try encoder.encode(self).base64URL
    }
  }

  /// Decodes a cursor from its token, or returns `nil` for any other word.
  public init?(token: String) {
    guard let data = Data(base64URL: token) else { return nil }
    do { self = try JSONDecoder().decode(PageCursor.self, from: data) } catch { return nil }
  }
}
