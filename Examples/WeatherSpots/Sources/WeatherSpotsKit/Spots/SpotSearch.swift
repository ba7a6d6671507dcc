import Foundation

extension Spot {
  /// The order in which spots are listed and exported: by name, then by id.
  public static func listedBefore(_ left: Spot, _ right: Spot) -> Bool {
    left.name == right.name ? left.id < right.id : left.name < right.name
  }

  /// The spots that a person means by a name: the one with this id, else those of this name, else those that differ in case or accents.
  public static func named(_ text: String, in spots: [Spot]) -> [Spot] {
    let text = text.trimmingCharacters(in: .whitespaces)
    if let spot = spots.first(where: { $0.id == text }) { return [spot] }
    let exact = spots.filter { $0.name == text }
    if !exact.isEmpty { return exact.sorted(by: listedBefore) }
    let folded = text.foldedForSearch
    return spots.filter { $0.name.foldedForSearch == folded }.sorted(by: listedBefore)
  }
}

extension String {
  fileprivate var foldedForSearch: String {
    folding(options: [.caseInsensitive, .diacriticInsensitive], locale: Locale(identifier: "en_US_POSIX"))
  }
}
