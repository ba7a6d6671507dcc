import Foundation

/// A cell of a global grid, about 1.1 km wide and high, for which weather is requested and cached.
///
/// A row spans 0.01 degrees of latitude. It has the number of cells at which a cell is about as wide as high. The two rows at the poles
/// have one cell. The meridians -180 and 180 are the same.
public struct GridCell: Hashable, Codable, Sendable {
  /// Row of the cell, counted from the south pole, 0 to 17,999.
  public let row: Int
  /// Index of the cell in its row, counted eastwards from 180 degrees.
  public let column: Int

  /// Center of the cell, for which the weather of all its points is requested.
  public var center: (latitude: Double, longitude: Double) {
    (Self.latitude(ofRow: row), (Double(column) + 0.5) / Double(Self.columns(inRow: row)) * 360 - 180)
  }

  private static func latitude(ofRow row: Int) -> Double { (Double(row) + 0.5) / 100 - 90 }

  private static func columns(inRow row: Int) -> Int {
    // All meridians meet at a pole. With several columns, the pole would be in several cells, each with a request of its own.
    row == 0 || row == 17_999 ? 1 : max(1, Int(36_000 * cos(latitude(ofRow: row) * .pi / 180)))
  }
}

extension GridCell {
  /// Creates the cell that contains a point.
  public init(_ coordinate: Coordinate) {
    // Counted from the south pole and rounded down, because rounding signed degrees toward zero would double the cells at the equator and
    // at Greenwich. The small term keeps 48.39, which is not exact in binary, in the cell that begins with it.
    // `min` puts the north pole into the last row, since its own row would be 18,000, which does not exist.
    row = min(17_999, Int(((coordinate.latitude + 90) * 100 + 1e-7).rounded(.down)))
    // One meridian must not have two cells, which would be cached separately.
    let longitude = coordinate.longitude == 180 ? -180 : coordinate.longitude
    let count = Self.columns(inRow: row)
    column = min(count - 1, Int(((longitude + 180) / 360 * Double(count) + 1e-7).rounded(.down)))
  }
}
