public import Foundation

extension Data {
  /// The bytes as base64url text (RFC 4648, section 5) without padding.
  public var base64URL: String { base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "") }

  /// Decodes text of the form of ``base64URL``, or returns `nil` for text that is not base 64.
  init?(base64URL text: String) {
    let text = text.replacing("-", with: "+").replacing("_", with: "/")
    // Foundation refuses base 64 without padding.
    self.init(base64Encoded: text + String(repeating: "=", count: (4 - text.count % 4) % 4))
  }
}
