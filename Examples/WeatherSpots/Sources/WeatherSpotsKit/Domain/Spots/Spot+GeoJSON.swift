public import Foundation

extension Spot {
  /// Returns spots as a GeoJSON FeatureCollection (RFC 7946) with one feature per line.
  public static func geoJSON(_ spots: [Spot]) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Written around the features by hand, because an encoder of the whole collection would put all features in one line.
    var data = Data("{\"type\":\"FeatureCollection\",\"features\":[".utf8)
    for (index, spot) in spots.sorted(by: listedBefore).enumerated() {
      data.append(contentsOf: (index == 0 ? "\n" : ",\n").utf8)
      data.append(try encoder.encode(Feature(spot)))
    }
    data.append(contentsOf: "\n]}\n".utf8)
    return data
  }

  private struct Feature: Encodable {
    let type = "Feature"
    let id: String
    let geometry: Point
    let properties: Properties

    init(_ spot: Spot) {
      id = spot.id
      // GeoJSON puts the longitude first (RFC 7946, section 3.1.1).
      geometry = Point(coordinates: [spot.longitude, spot.latitude])
      properties = Properties(spot)
    }
  }

  private struct Properties: Encodable {
    let name, timezone, country, kind, source, rating, notes: String
    let tags: [String]
    let visits: Int

    init(_ spot: Spot) {
      (name, timezone, country, kind) = (spot.name, spot.timezone, spot.country, spot.kind)
      (source, rating, notes) = (spot.source, spot.rating == 0 ? "" : String(spot.rating), spot.notes)
      (tags, visits) = (spot.tags, spot.visits)
    }
  }

  private struct Point: Encodable {
    let type = "Point"
    let coordinates: [Double]
  }
}
