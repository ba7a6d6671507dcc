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
      data.append(try encoder.encode(feature(spot)))
    }
    data.append(contentsOf: "\n]}\n".utf8)
    return data
  }

  private static func feature(_ spot: Spot) -> JSONRow {
    // GeoJSON puts the longitude first (RFC 7946, section 3.1.1).
    let point: JSONRow = ["type": "Point", "coordinates": [spot.longitude, spot.latitude]]
    let properties: JSONRow = [
      "name": spot.name, "timezone": spot.timezone, "country": spot.country, "kind": spot.kind, "source": spot.source,
      "rating": spot.rating == 0 ? "" : String(spot.rating), "notes": spot.notes, "tags": spot.tags, "visits": spot.visits,
    ]
    return ["type": "Feature", "id": spot.id, "geometry": point, "properties": properties]
  }
}
