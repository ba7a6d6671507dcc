// Alerts/ is the pipeline of weather warnings for a server: watchers are grouped into clusters, the provider is called once for each
// cluster and interval, and new warnings go through a durable queue to each watcher once.
// Invariant: each call and each delivery is stored before it starts and its success after it. No state is kept in memory only.
// Called by the commands `alerts watch|list`. AlertSource fetches from a provider, and AlertSink delivers.

import Foundation

/// A group of nearby watchers in one country, served by one call to the provider.
///
/// Watchers are sorted into geohash cells of five characters (4.9 by 4.9 km at the equator) and by country, since warnings are issued for
/// a country. The cells are visited in order: first those with the most watched points, then by name. A cell takes all of its points
/// that no earlier cell has taken, and those points of its eight neighbours that are within ``radius`` of its centre. The provider is
/// called for the centre.
///
/// Two near points on both sides of an edge are therefore one cluster, unless an earlier cell has taken one of them. No member is farther
/// than the radius from the centre, and no two members are farther apart than twice the radius. The result does not depend on the order
/// of the watchers, nor on the number of watchers at a point.
public struct SpotCluster: Sendable {
  /// The key of a cluster: a geohash cell and a country.
  public struct ID: RawRepresentable, Hashable, Codable, Sendable {
    /// Geohash cell whose centre is the place of the call.
    public let cell: Geohash
    /// ISO 3166 code of the country, or an empty string.
    public let country: String

    /// Name of the cell and the country, such as `gbsuv FR`.
    public var rawValue: String { country.isEmpty ? cell.description : "\(cell) \(country)" }
  }

  /// Number of characters of the geohash cells.
  public static let precision = 5
  /// Largest distance of a member from the centre, in kilometres.
  public static let radius = 5.0

  /// Geohash cell and country.
  public let id: ID
  /// Time zone of a member: the first by name.
  public let timezone: String
  /// Members of the cluster, sorted by id.
  public let watchers: [Watcher]

  /// Centre of the cell, for which the provider is called.
  public var center: Coordinate { id.cell.center }

  /// Groups watchers into clusters, the largest first.
  ///
  /// Cost: one to two microseconds for each watcher.
  public static func clusters(of watchers: [Watcher]) -> [SpotCluster] {
    var byCell: [ID: [Coordinate: [Watcher]]] = [:]
    for watcher in watchers {
      let id = ID(cell: Geohash(watcher.coordinate, precision: precision), country: watcher.country)
      byCell[id, default: [:]][watcher.coordinate, default: []].append(watcher)
    }
    // Names are computed once: making one costs more than comparing two.
    let order = byCell.map { (id: $0.key, name: $0.key.cell.description, points: $0.value.count) }
      // By points and not by watchers: one more watcher of a point must not move others into another cluster.
      .sorted { ($1.points, $0.name, $0.id.country) < ($0.points, $1.name, $1.id.country) }
    var clusters: [SpotCluster] = []
    for (id, _, _) in order {
      // No check of the distance: the corners of a cell are at most 3.5 km from its centre.
      guard var members = byCell.removeValue(forKey: id)?.values.flatMap(\.self), !members.isEmpty else { continue }
      let center = id.cell.center
      for cell in id.cell.neighbors {
        let neighbor = ID(cell: cell, country: id.country)
        guard let points = byCell[neighbor] else { continue }
        // The removal below also means that no later cell takes the same point again.
        for (point, watchers) in points where center.kilometers(to: point) <= radius {
          members += watchers
          byCell[neighbor]?[point] = nil
        }
      }
      clusters.append(SpotCluster(id, members))
    }
    return clusters.map { (cluster: $0, name: $0.id.rawValue) }
      .sorted { ($1.cluster.watchers.count, $0.name) < ($0.cluster.watchers.count, $1.name) }.map(\.cluster)
  }

  private init(_ id: ID, _ members: [Watcher]) {
    self.id = id
    watchers = members.sorted { $0.id < $1.id }
    timezone = members.map(\.timezone).min() ?? "GMT"
  }
}

extension SpotCluster.ID {
  /// Parses the name of a cell and a country, or returns `nil` for any other text.
  public init?(rawValue: String) {
    let parts = rawValue.split(separator: " ", maxSplits: 1)
    guard let name = parts.first, let cell = Geohash(String(name)) else { return nil }
    self.init(cell: cell, country: parts.count > 1 ? String(parts[1]) : "")
  }

  /// Centre of the cell, for which the provider is called.
  public var center: Coordinate { cell.center }
}
