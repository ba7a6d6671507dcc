import Foundation

extension Double {
  /// The same number, with 0 for -0, which services send and nobody wants to read.
  var withoutNegativeZero: Double { self == 0 ? 0 : self }

  /// Returns the number with fixed decimals and a point, whatever the device's language; never "-0.0".
  public func text(decimals: Int) -> String {
    let text = String(format: "%.\(decimals)f", locale: Locale(identifier: "en_US_POSIX"), self)
    return text.hasPrefix("-") && !text.contains { ("1"..."9").contains($0) } ? String(text.dropFirst()) : text
  }

  /// Returns the number rounded to some decimals, for output that machines read; one too large for any decimals as it is.
  func rounded(decimals: Int) -> Double {
    let factor = pow(10, Double(decimals))
    let product = self * factor
    return product.isFinite ? (product.rounded() / factor).withoutNegativeZero : self
  }
}
