// Geohash/ names the cells of a grid that halves the globe again and again: near points mostly share the beginning of their names.
// Invariant: a Geohash that exists is one of the 32^n cells of its precision n. Called by the clustering of watched spots for alerts.

import Foundation

/// A cell of the geohash grid, written with 1 to 12 letters and digits.
///
/// Five characters are a cell of 4.9 by 4.9 km at the equator, six of 0.6 by 1.2 km; toward the poles cells become narrower. Two points can
/// be near and share nothing, at the equator or the date line: ask ``neighbors`` too.
public struct Geohash: Hashable, Sendable, TextCodable {
  /// The characters, five bits each.
  static let alphabet = Array("0123456789bcdefghjkmnpqrstuvwxyz")
  /// The precisions there are.
  public static let precisions = 1...12

  /// The words for a geohash, for the error of a text that is none.
  public static let expectedText = "a geohash"

  /// The number of characters.
  public let precision: Int
  /// The row from the south pole.
  private let row: Int
  /// The column eastwards from 180 degrees.
  private let column: Int

  private init(precision: Int, row: Int, column: Int) {
    self.precision = precision
    self.row = row
    self.column = column
  }

  /// Makes the cell around a point.
  ///
  /// A point on an edge belongs to the cell north or east of it; the north pole to the last row, and 180 degrees is -180.
  ///
  /// - Parameters:
  ///   - coordinate: The point.
  ///   - precision: The number of characters; what is outside 1 to 12 is taken for the nearest of these.
  public init(_ coordinate: Coordinate, precision: Int) {
    self.precision = min(max(precision, Self.precisions.lowerBound), Self.precisions.upperBound)
    let bits = Self.bits(self.precision)
    row = Self.index(coordinate.latitude, in: -90, 90, bits: bits.row)
    column = Self.index(coordinate.longitude == 180 ? -180 : coordinate.longitude, in: -180, 180, bits: bits.column)
  }

  /// Reads a geohash in capital or small letters; `nil` for anything else.
  public init?(_ text: String) {
    guard Self.precisions.contains(text.count) else { return nil }
    var (row, column, isColumn) = (0, 0, true)
    for character in text.lowercased() {
      guard let value = Self.alphabet.firstIndex(of: character) else { return nil }
      for shift in (0..<5).reversed() {
        let bit = value >> shift & 1
        if isColumn { column = column << 1 | bit } else { row = row << 1 | bit }
        isColumn.toggle()
      }
    }
    self.init(precision: text.count, row: row, column: column)
  }

  /// The characters, in small letters.
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

  /// The cell's edges, in degrees: south to north, and west to east.
  public var box: (latitudes: ClosedRange<Double>, longitudes: ClosedRange<Double>) {
    let bits = Self.bits(precision)
    let (height, width) = (180 / Double(1 << bits.row), 360 / Double(1 << bits.column))
    let (south, west) = (Double(row) * height - 90, Double(column) * width - 180)
    return (south...south + height, west...west + width)
  }

  /// The middle of the cell.
  public var center: Coordinate {
    let box = box
    return Coordinate(
      stored: (box.latitudes.lowerBound + box.latitudes.upperBound) / 2, (box.longitudes.lowerBound + box.longitudes.upperBound) / 2)
  }

  /// Returns the cell some steps away; `nil` beyond a pole.
  ///
  /// Steps to the east and west go around the globe.
  public func neighbor(north: Int, east: Int) -> Geohash? {
    let bits = Self.bits(precision)
    let (rows, columns) = (1 << bits.row, 1 << bits.column)
    guard (0..<rows).contains(row + north) else { return nil }
    return Geohash(precision: precision, row: row + north, column: ((column + east) % columns + columns) % columns)
  }

  /// The eight cells around this one, clockwise from the north; five at the poles.
  public var neighbors: [Geohash] {
    [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)].compactMap { neighbor(north: $0.0, east: $0.1) }
  }

  private static func bits(_ precision: Int) -> (row: Int, column: Int) { (precision * 5 / 2, (precision * 5 + 1) / 2) }

  /// Halves the range again and again, which is how the names are defined; a division would round differently at edges.
  private static func index(_ value: Double, in low: Double, _ high: Double, bits: Int) -> Int {
    var (low, high, index) = (low, high, 0)
    for _ in 0..<bits {
      let middle = (low + high) / 2
      if value >= middle { (low, index) = (middle, index << 1 | 1) } else { (high, index) = (middle, index << 1) }
    }
    return index
  }
}
