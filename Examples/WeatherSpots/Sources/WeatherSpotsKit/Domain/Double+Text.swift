import Foundation

extension Double {
  /// The same number, with 0 in place of -0, which some services send.
  var withoutNegativeZero: Double { self == 0 ? 0 : self }

  /// Returns the number with a fixed count of decimals and a decimal point, in every language of the device.
  ///
  /// A number that rounds to zero has no minus sign.
  public func text(decimals: Int) -> String {
    let text = String(format: "%.\(decimals)f", locale: Locale(identifier: "en_US_POSIX"), self)
    // Decided on the text: -0.04 is less than 0, but with one decimal its text would be "-0.0".
    return text.hasPrefix("-") && !text.contains { ("1"..."9").contains($0) } ? String(text.dropFirst()) : text
  }

  /// Returns the number rounded to a count of decimals, for machine-readable output.
  ///
  /// A number so large that the multiplication would overflow is returned unchanged.
  func rounded(decimals: Int) -> Double {
    let factor = pow(10, Double(decimals))
    let product = self * factor
    return product.isFinite ? (product.rounded() / factor).withoutNegativeZero : self
  }
}
