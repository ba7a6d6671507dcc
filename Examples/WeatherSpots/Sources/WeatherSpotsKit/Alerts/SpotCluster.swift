// Alerts/ is the pipeline of warnings as a server runs it: watchers are clustered, each cluster is asked for once and schedule, what is new
// goes into a durable queue, and from there to each watcher once.
// Invariant: what has to be done is in the store before it is done, and what was done is noted there after; nothing is kept in memory only.
// Called by the commands `alerts watch|list`; asks a provider through AlertSource and hands over through AlertSink.

import Foundation

/// Watchers who are served by one question to the provider.
///
/// The rule: watchers are sorted into geohash cells of five characters (4.9 by 4.9 km at the equator) by country, since warnings are a
/// country's. The cells are gone through in order, those with the most watched points first, and then by name. A cell takes all its
/// points that are not taken yet, and those of its eight neighbours that are no farther than ``radius`` from its centre. The
/// question is asked for the centre.
///
/// So two near points on both sides of an edge are one cluster, unless a cell that came earlier has taken one of them. No member is farther
/// than the radius from where the question is asked, and no two are farther apart than twice that. The result depends on who watches, and
/// neither on the order in which they came nor on how many watch one point.
public struct SpotCluster: Sendable {
  /// The key of a cluster: a geohash cell and a country.
  public struct ID: RawRepresentable, Hashable, Codable, Sendable {
    /// The cell in whose centre the question is asked.
    public let cell: Geohash
    /// The ISO 3166 code of the country, or nothing.
    public let country: String

    /// The cell's name and the country, such as `gbsuv FR`.
    public var rawValue: String { country.isEmpty ? cell.description : "\(cell) \(country)" }

    init(cell: Geohash, country: String) {
      self.cell = cell
      self.country = country
    }

    /// Reads the name and the country; `nil` for anything else.
    public init?(rawValue: String) {
      let parts = rawValue.split(separator: " ", maxSplits: 1)
      guard let name = parts.first, let cell = Geohash(String(name)) else { return nil }
      self.init(cell: cell, country: parts.count > 1 ? String(parts[1]) : "")
    }
  }

  /// The precision of the cells.
  public static let precision = 5
  /// The greatest distance of a member from the centre, in kilometres.
  public static let radius = 5.0

  /// The cell and the country.
  public let id: ID
  /// A zone of its members, the first by name.
  public let timezone: String
  /// Its members, by id.
  public let watchers: [Watcher]

  /// The point that the provider is asked about.
  public var center: Coordinate { id.cell.center }

  /// Sorts watchers into clusters, the largest first.
  ///
  /// Cost: about a microsecond or two for each watcher.
  public static func clusters(of watchers: [Watcher]) -> [SpotCluster] {
    var byCell: [ID: [Coordinate: [Watcher]]] = [:]
    for watcher in watchers {
      let id = ID(cell: Geohash(watcher.coordinate, precision: precision), country: watcher.country)
      byCell[id, default: [:]][watcher.coordinate, default: []].append(watcher)
    }
    // Names are made once: making them is dearer than comparing them.
    let order = byCell.map { (id: $0.key, name: $0.key.cell.description, points: $0.value.count) }
      .sorted { ($1.points, $0.name, $0.id.country) < ($0.points, $1.name, $1.id.country) }
    var clusters: [SpotCluster] = []
    for (id, _, _) in order {
      guard var members = byCell.removeValue(forKey: id)?.values.flatMap(\.self), !members.isEmpty else { continue }
      let center = id.cell.center
      for cell in id.cell.neighbors {
        let neighbor = ID(cell: cell, country: id.country)
        guard let points = byCell[neighbor] else { continue }
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
  /// The point that the provider is asked about.
  public var center: Coordinate { cell.center }
}
