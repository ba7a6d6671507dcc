public import Foundation

extension Data {
  /// The bytes in base 64 with the alphabet for URLs (RFC 4648, section 5), without padding.
  public var base64URL: String {
    base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// Reads ``base64URL`` back; `nil` for other text.
  init?(base64URL text: String) {
    let text = text.replacing("-", with: "+").replacing("_", with: "/")
    self.init(base64Encoded: text + String(repeating: "=", count: (4 - text.count % 4) % 4))
  }
}
