import Foundation

/// A record with a property of each type that the decoder treats in its own way.
struct JSONProbe: Codable, Hashable {
  enum Kind: String, Codable { case a, b = "é", c = "" }
  struct Point: Codable, Hashable {
    var x: Double
    var y: Float?
  }

  var int: Int?
  var small: Int8?
  var large: UInt64?
  var wide: Int64?
  var double: Double?
  var bool: Bool?
  var text: String?
  var id: UUID?
  var date: Date?
  var data: Data?
  var url: URL?
  var decimal: Decimal?
  var kind: Kind?
  var point: Point?
  var points: [Point]?
  var names: [String: Int]?
  var nested: [[Bool?]]?
  var é: String?
}
