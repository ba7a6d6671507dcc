import Foundation

/// A square of about 1.1 km, the same for everyone inside it.
///
/// Rows of 0.01 degrees of latitude counted from the south pole, each cut into as many cells as make them about as wide as they are high;
/// the two rows at the poles have one. Both -180 and 180 are one meridian.
public struct GridCell: Hashable, Codable, Sendable {
  /// The row from the south pole, 0 to 17,999.
  public let row: Int
  /// The cell in the row, eastwards from 180 degrees.
  public let column: Int

  /// The point that the weather is requested for, the same for every point of the cell.
  public var center: (latitude: Double, longitude: Double) {
    (Self.latitude(ofRow: row), (Double(column) + 0.5) / Double(Self.columns(inRow: row)) * 360 - 180)
  }

  private static func latitude(ofRow row: Int) -> Double { (Double(row) + 0.5) / 100 - 90 }

  private static func columns(inRow row: Int) -> Int {
    row == 0 || row == 17_999 ? 1 : max(1, Int(36_000 * cos(latitude(ofRow: row) * .pi / 180)))
  }
}

extension GridCell {
  /// Makes the cell around a point.
  public init(_ coordinate: Coordinate) {
    // Rounded down, never toward zero, which would double the cells at the equator and at Greenwich. The small term keeps 48.39, which
    // is not exact in binary, in the cell that begins with it.
    row = min(17_999, Int(((coordinate.latitude + 90) * 100 + 1e-7).rounded(.down)))
    let longitude = coordinate.longitude == 180 ? -180 : coordinate.longitude
    let count = Self.columns(inRow: row)
    column = min(count - 1, Int(((longitude + 180) / 360 * Double(count) + 1e-7).rounded(.down)))
  }
}
