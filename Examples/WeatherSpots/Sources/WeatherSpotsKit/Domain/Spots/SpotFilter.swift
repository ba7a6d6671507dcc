// The queries that commands run on the stored spots. Tests check that an index answers each of them.

import Foundation
public import Larder

/// A filter for listed spots by country, kind, rating and tags.
public struct SpotFilter: Sendable {
  /// Country in its stored form, or `nil` for all countries.
  public var country: String?
  /// Kind in its stored form, or `nil` for all kinds.
  public var kind: String?
  /// Minimum rating, or `nil` for all spots, including spots without a rating.
  public var minimumRating: Int?
  /// Tags that a spot must all have, in their stored form.
  public var tags: [String]

  /// Creates a filter from a country and a kind in upper or lower case.
  public init(country: String? = nil, kind: String? = nil, minimumRating: Int? = nil, tags: [String] = []) {
    self.country = country.map(Spot.normalizedCountry)
    self.kind = kind.map(Spot.normalizedKind)
    self.minimumRating = minimumRating
    self.tags = tags
  }

  /// Returns whether a spot in memory passes the filter.
  public func contains(_ spot: Spot) -> Bool {
    spot.country == country ?? spot.country && spot.kind == kind ?? spot.kind && spot.rating >= minimumRating ?? 0
      && tags.allSatisfy(spot.tags.contains)
  }

  fileprivate func applied(to query: Query<Spot>) -> Query<Spot> {
    var query = query
    if let country { query = query.where(#Predicate { $0.country == country }) }
    if let kind { query = query.where(#Predicate { $0.kind == kind }) }
    if let minimumRating { query = query.where(#Predicate { $0.rating >= minimumRating }) }
    // No index covers tags: a spot has several of them, and an index holds one value for each spot.
    if !tags.isEmpty { query = query.filter { [tags] spot in tags.allSatisfy(spot.tags.contains) } }
    return query
  }
}

/// The sort orders of lists of spots, in which equal values are sorted by name.
public enum SpotOrder: String, CaseIterable, Sendable {
  case name, country, kind
  /// By rating, the best first.
  case rating
}

extension Query<Spot> {
  /// Returns a query for the spots that pass a filter, in a sort order.
  public static func spots(_ filter: SpotFilter = .init(), by order: SpotOrder = .name) -> Query<Spot> {
    let query = filter.applied(to: Query())
    return switch order {
    case .name: query.sorted(by: \.name)
    case .country: query.sorted(by: \.country).sorted(by: \.name)
    // Each pair of keys is one of the indexes of the schema. Another second key would sort in memory.
    case .kind: query.sorted(by: \.kind).sorted(by: \.name)
    case .rating: query.sorted(by: \.rating, .reverse).sorted(by: \.name)
    }
  }

  /// Returns a query for the spots around a point that pass a filter, the nearest first.
  public static func spots(near point: Coordinate, within distance: Distance? = nil, _ filter: SpotFilter = .init()) -> Query<Spot> {
    filter.applied(to: Query().near(latitude: point.latitude, longitude: point.longitude, within: distance))
  }

  /// Returns a full-text query for the spots with all words in their name, notes or kind that pass a filter, the best match first.
  public static func spots(matching words: String, _ filter: SpotFilter = .init()) -> Query<Spot> {
    filter.applied(to: Query().matching(words))
  }

  /// Returns a query for the spots with exactly this name.
  public static func spots(named name: String) -> Query<Spot> { Query().where(#Predicate { $0.name == name }).sorted(by: \.name) }

  /// Returns a query for the spots whose names equal this one apart from case and accents.
  public static func spots(namedLike name: String) -> Query<Spot> {
    let folded = name.foldedForSearch
    // The full-text index finds the candidates, which may contain further words. The filter removes those.
    return Query().matching(name).filter { $0.name.foldedForSearch == folded }.sorted(by: \.name)
  }
}

extension SpotStore {
  /// Returns the spots that a typed name or id refers to.
  ///
  /// The first of these lookups that finds a spot decides: the exact id, the exact name, the name without case and accents, and the
  /// approximate id of a ``TypedID``.
  public func find(named text: String) async throws(RepositoryError) -> [Spot] {
    // Names are stored in composed form, and terminals may send decomposed accents.
    let text = text.precomposedStringWithCanonicalMapping.trimmingCharacters(in: .whitespaces)
    if let spot = try await spots.find(by: text) { return [spot] }
    let exact = try await spots.fetch(.spots(named: text))
    // "Brest" must not become ambiguous because a "BREST" is stored too.
    guard exact.isEmpty else { return exact }
    let alike = try await spots.fetch(.spots(namedLike: text))
    guard alike.isEmpty, let id = TypedID(text) else { return alike }
    return try await spots.fetch(id.query)
  }
}

extension String {
  /// The text without its case and accents.
  var foldedForSearch: String { folding(options: [.caseInsensitive, .diacriticInsensitive], locale: Locale(identifier: "en_US_POSIX")) }
}
