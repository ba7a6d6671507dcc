import Foundation
public import Larder

extension PageCursor {
  /// The cursor as a word without blanks, for a command line.
  public var token: String {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      // RFC 4648, section 5: nothing in it means anything to a shell.
      return try encoder.encode(self).base64EncodedString()
        .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
  }

  /// Reads a token back, or `nil` for a word that is none.
  public init?(token: String) {
    let text = token.replacing("-", with: "+").replacing("_", with: "/")
    guard let data = Data(base64Encoded: text + String(repeating: "=", count: (4 - text.count % 4) % 4)) else { return nil }
    do { self = try JSONDecoder().decode(PageCursor.self, from: data) } catch { return nil }
  }
}
