import Foundation

/// A lookup of countries by ISO 3166 codes and English names.
public enum CountryNames {
  private static let english = Locale(identifier: "en")

  // Foundation's list also has numeric areas, such as 150 for Europe, which are not countries.
  private static let regions = Set(Locale.Region.isoRegions.map(\.identifier).filter { $0.utf8.count == 2 })

  /// ISO codes by English names without case and accents.
  private static let codes: [String: String] = {
    let named = regions.compactMap { code in english.localizedString(forRegionCode: code).map { (folded($0), code) } }
    return Dictionary(named) { first, _ in first }
  }()

  /// Returns the ISO 3166 code of the country that a text names, or `nil` if it names no country or several.
  ///
  /// The text is a code of two or three letters (FR, FRA, UK), an English name (France), or the first words of one.
  public static func code(for text: String) -> String? {
    // The usual case, without folding the text.
    if regions.contains(text) { return text }
    let name = folded(text)
    guard !name.isEmpty else { return nil }
    if let code = codes[name] { return code }
    // Foundation has names for codes of three letters and for aliases such as UK. The way back goes through the name.
    if (2...3).contains(name.utf8.count), let found = english.localizedString(forRegionCode: name.uppercased()),
      let code = codes[folded(found)]
    {
      return code
    }
    let beginning = codes.filter { $0.key.hasPrefix("\(name) ") }
    // "North" begins several names, and a guess would put the spot in the wrong country.
    return beginning.count == 1 ? beginning.first?.value : nil
  }

  /// Returns the display name of a country code, such as "France (FR)", or the code in quotation marks if it has no name.
  public static func label(_ code: String) -> String {
    english.localizedString(forRegionCode: code).map { "\($0) (\(code))" } ?? "\"\(code)\""
  }

  /// Returns the display names of the countries whose English names are most similar to a text.
  public static func labels(near text: String) -> [String] {
    NearNames.names(near: folded(text), in: codes.keys).compactMap { codes[$0].map(label) }
  }

  private static func folded(_ text: String) -> String {
    text.foldedForSearch.replacing("&", with: "and").replacing("st.", with: "saint").replacing("’", with: "'").split(separator: " ")
      .joined(separator: " ")
  }
}
