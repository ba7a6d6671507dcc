import Foundation
public import Larder

extension PageCursor {
  /// The cursor as a word without blanks, for a command line.
  public var token: String {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      // Nothing in that alphabet means anything to a shell.
      return try encoder.encode(self).base64URL
    }
  }

  /// Reads a token back, or `nil` for a word that is none.
  public init?(token: String) {
    guard let data = Data(base64URL: token) else { return nil }
    do { self = try JSONDecoder().decode(PageCursor.self, from: data) } catch { return nil }
  }
}
