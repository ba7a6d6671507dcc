import Foundation
import Larder

extension Place {
  /// The indexes that are compared; each with a name for tables.
  package enum Indexes {
    package static let ordered = RepositoryIndex<Place>.ordered(\.country, \.rating)
    package static let population = RepositoryIndex<Place>.ordered(\.population)
    package static let unique = RepositoryIndex<Place>.unique(\.slug)
    package static let geo = RepositoryIndex<Place>.geo(\.latitude, \.longitude)
    package static let text = RepositoryIndex<Place>.fullText(\.name, \.notes)
    package static let four = [ordered, unique, geo, text]
  }

  /// The most populous country of the list, of which a page of the best is asked for.
  package static let country = "US"

  /// The query for a page of the best places of one country, which the index over country and rating orders.
  package static var best: Query<Place> {
    let country = Place.country
    return Query().where(#Predicate { $0.country == country && $0.rating >= 4 }).sorted(by: \.rating, .reverse).limit(50)
  }
}
