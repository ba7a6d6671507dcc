// Geohashes name the cells of a grid that halves the globe repeatedly, so that near points mostly share a prefix of their names.
// Invariant: a Geohash value is one of the 32^n cells of its precision n. The clustering of watched spots for alerts uses it.

import Foundation

/// A cell of the geohash grid, written with 1 to 12 letters and digits.
///
/// At the equator a cell of five characters measures 4.9 by 4.9 km, and one of six characters 0.6 by 1.2 km. Cells become narrower toward
/// the poles. Near points on two sides of the equator or the date line share no prefix, so search the ``neighbors`` of a cell too.
public struct Geohash: Hashable, Sendable, TextCodable {
  /// Alphabet of geohashes, in which each character stands for five bits.
  static let alphabet = Array("0123456789bcdefghjkmnpqrstuvwxyz")
  /// Supported precisions, in characters.
  public static let precisions = 1...12

  /// Name of the expected form in a decoding error.
  public static let expectedText = "a geohash"

  /// Number of characters.
  public let precision: Int
  /// Row of the cell, counted from the south pole.
  private let row: Int
  /// Column of the cell, counted eastwards from 180 degrees.
  private let column: Int
}

extension Geohash {
  /// Creates the cell that contains a point.
  ///
  /// A point on an edge belongs to the cell north or east of it. The north pole belongs to the last row, and 180 degrees is -180.
  ///
  /// - Parameters:
  ///   - coordinate: The point.
  ///   - precision: The number of characters. A number outside 1 to 12 is clamped to that range.
  public init(_ coordinate: Coordinate, precision: Int) {
    let precision = min(max(precision, Self.precisions.lowerBound), Self.precisions.upperBound)
    let bits = Self.bits(precision)
    // 180 and -180 are one meridian. Without this its points would lie in two cells at opposite ends of the grid.
    let longitude = coordinate.longitude == 180 ? -180 : coordinate.longitude
    self.init(
      precision: precision, row: Self.index(coordinate.latitude, in: -90, 90, bits: bits.row),
      column: Self.index(longitude, in: -180, 180, bits: bits.column))
  }

  /// Parses a geohash in upper or lower case, or returns `nil` for any other text.
  public init?(_ text: String) {
    guard Self.precisions.contains(text.count) else { return nil }
    var (row, column, isColumn) = (0, 0, true)
    for character in text.lowercased() {
      guard let value = Self.alphabet.firstIndex(of: character) else { return nil }
      // The bits alternate, and the first one belongs to the longitude. They alternate across characters too.
      for shift in (0..<5).reversed() {
        let bit = value >> shift & 1
        if isColumn { column = column << 1 | bit } else { row = row << 1 | bit }
        isColumn.toggle()
      }
    }
    self.init(precision: text.count, row: row, column: column)
  }

  /// The geohash as text in lower case.
  public var description: String {
    let bits = Self.bits(precision)
    var (value, text) = (0, "")
    for position in 0..<precision * 5 {
      let bit = position.isMultiple(of: 2) ? column >> (bits.column - 1 - position / 2) & 1 : row >> (bits.row - 1 - position / 2) & 1
      value = value << 1 | bit
      guard position % 5 == 4 else { continue }
      text.append(Self.alphabet[value])
      value = 0
    }
    return text
  }

  /// Edges of the cell in degrees, from south to north and from west to east.
  public var box: (latitudes: ClosedRange<Double>, longitudes: ClosedRange<Double>) {
    let bits = Self.bits(precision)
    let (height, width) = (180 / Double(1 << bits.row), 360 / Double(1 << bits.column))
    let (south, west) = (Double(row) * height - 90, Double(column) * width - 180)
    return (south...south + height, west...west + width)
  }

  /// Center of the cell.
  public var center: Coordinate {
    let box = box
    return Coordinate(
      stored: (box.latitudes.lowerBound + box.latitudes.upperBound) / 2, (box.longitudes.lowerBound + box.longitudes.upperBound) / 2)
  }

  /// Returns the cell at a distance in cells, or `nil` beyond a pole.
  ///
  /// Steps to the east and west go around the globe.
  public func neighbor(north: Int, east: Int) -> Geohash? {
    let bits = Self.bits(precision)
    let (rows, columns) = (1 << bits.row, 1 << bits.column)
    guard (0..<rows).contains(row + north) else { return nil }
    // Swift's `%` keeps the sign, so a step west from column 0 would be column -1.
    return Geohash(precision: precision, row: row + north, column: ((column + east) % columns + columns) % columns)
  }

  /// The eight cells around this one, clockwise from the north, or five in a row at a pole.
  public var neighbors: [Geohash] {
    [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)].compactMap { neighbor(north: $0.0, east: $0.1) }
  }

  private static func bits(_ precision: Int) -> (row: Int, column: Int) { (precision * 5 / 2, (precision * 5 + 1) / 2) }

  /// Returns the row or column of a value by repeated halving, as geohashes are defined.
  ///
  /// A division would round differently at the edges of cells.
  private static func index(_ value: Double, in low: Double, _ high: Double, bits: Int) -> Int {
    var (low, high, index) = (low, high, 0)
    for _ in 0..<bits {
      let middle = (low + high) / 2
      if value >= middle { (low, index) = (middle, index << 1 | 1) } else { (high, index) = (middle, index << 1) }
    }
    return index
  }
}
