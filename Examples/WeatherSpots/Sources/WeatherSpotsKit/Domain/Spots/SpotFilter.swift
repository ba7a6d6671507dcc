// Every question that a command asks of the stored spots; the tests check that an index answers each of them.

import Foundation
public import Larder

/// The conditions that shown spots fulfil.
public struct SpotFilter: Sendable {
  /// The country, in any case; `nil` for all.
  public var country: String?
  /// The kind, in any case; `nil` for all.
  public var kind: String?
  /// The least rating; `nil` for all, those that have none too.
  public var minimumRating: Int?
  /// The tags that all are there, in their stored form.
  public var tags: [String]

  /// Makes a filter.
  public init(country: String? = nil, kind: String? = nil, minimumRating: Int? = nil, tags: [String] = []) {
    self.country = country.map(Spot.normalizedCountry)
    self.kind = kind.map(Spot.normalizedKind)
    self.minimumRating = minimumRating
    self.tags = tags
  }

  /// Returns whether a spot passes, for one that is at hand.
  public func contains(_ spot: Spot) -> Bool {
    spot.country == country ?? spot.country && spot.kind == kind ?? spot.kind && spot.rating >= minimumRating ?? 0
      && tags.allSatisfy(spot.tags.contains)
  }

  fileprivate func applied(to query: Query<Spot>) -> Query<Spot> {
    var query = query
    if let country { query = query.where(#Predicate { $0.country == country }) }
    if let kind { query = query.where(#Predicate { $0.kind == kind }) }
    if let minimumRating { query = query.where(#Predicate { $0.rating >= minimumRating }) }
    // No index has them: a spot has some, and an index one value of each.
    if !tags.isEmpty { query = query.filter { [tags] spot in tags.allSatisfy(spot.tags.contains) } }
    return query
  }
}

/// The orders in which spots are listed; what is equal goes by name.
public enum SpotOrder: String, CaseIterable, Sendable {
  case name, country, kind
  /// The best first.
  case rating
}

extension Query<Spot> {
  /// Returns the spots that pass a filter, in an order.
  public static func spots(_ filter: SpotFilter = .init(), by order: SpotOrder = .name) -> Query<Spot> {
    let query = filter.applied(to: Query())
    return switch order {
    case .name: query.sorted(by: \.name)
    case .country: query.sorted(by: \.country).sorted(by: \.name)
    case .kind: query.sorted(by: \.kind).sorted(by: \.name)
    case .rating: query.sorted(by: \.rating, .reverse).sorted(by: \.name)
    }
  }

  /// Returns the spots around a point that pass a filter, the nearest first.
  public static func spots(near point: Coordinate, within distance: Distance? = nil, _ filter: SpotFilter = .init()) -> Query<Spot> {
    filter.applied(to: Query().near(latitude: point.latitude, longitude: point.longitude, within: distance))
  }

  /// Returns the spots in whose name, notes or kind all the words are, and that pass a filter, the best match first.
  public static func spots(matching words: String, _ filter: SpotFilter = .init()) -> Query<Spot> {
    filter.applied(to: Query().matching(words))
  }

  /// Returns the spots of exactly this name.
  public static func spots(named name: String) -> Query<Spot> { Query().where(#Predicate { $0.name == name }).sorted(by: \.name) }

  /// Returns the spots whose names differ from this one in nothing but case and accents.
  public static func spots(namedLike name: String) -> Query<Spot> {
    let folded = name.foldedForSearch
    return Query().matching(name).filter { $0.name.foldedForSearch == folded }.sorted(by: \.name)
  }
}

extension SpotStore {
  /// Returns the spots that a person means by a name: the one with this id, else those of this name, else those that differ in case or
  /// accents, else those of an id as ``TypedID`` reads it.
  public func find(named text: String) async throws(RepositoryError) -> [Spot] {
    let text = text.precomposedStringWithCanonicalMapping.trimmingCharacters(in: .whitespaces)
    if let spot = try await spots.find(by: text) { return [spot] }
    let exact = try await spots.fetch(.spots(named: text))
    guard exact.isEmpty else { return exact }
    let alike = try await spots.fetch(.spots(namedLike: text))
    guard alike.isEmpty, let id = TypedID(text) else { return alike }
    return try await spots.fetch(id.query)
  }
}

extension String {
  /// The text without its case and accents.
  var foldedForSearch: String {
    folding(options: [.caseInsensitive, .diacriticInsensitive], locale: Locale(identifier: "en_US_POSIX"))
  }
}
