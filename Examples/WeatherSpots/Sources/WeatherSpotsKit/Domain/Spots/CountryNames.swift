import Foundation

/// Countries by their ISO 3166 codes and their English names.
public enum CountryNames {
  private static let english = Locale(identifier: "en")

  private static let regions = Set(Locale.Region.isoRegions.map(\.identifier).filter { $0.utf8.count == 2 })

  /// The codes by the folded names.
  private static let codes: [String: String] = {
    let named = regions.compactMap { code in english.localizedString(forRegionCode: code).map { (folded($0), code) } }
    return Dictionary(named) { first, _ in first }
  }()

  /// Returns the code of the country that a text means, or `nil` where it means none, or several.
  ///
  /// The text is a code of two or three letters, such as FR, FRA or UK, or an English name, such as France, or the first words of one.
  public static func code(for text: String) -> String? {
    if regions.contains(text) { return text }
    let name = folded(text)
    guard !name.isEmpty else { return nil }
    if let code = codes[name] { return code }
    if (2...3).contains(name.utf8.count), let found = english.localizedString(forRegionCode: name.uppercased()),
      let code = codes[folded(found)]
    {
      return code
    }
    let beginning = codes.filter { $0.key.hasPrefix("\(name) ") }
    return beginning.count == 1 ? beginning.first?.value : nil
  }

  /// Returns a country as it is shown, such as France (FR), or a code that has no name in quotes.
  public static func label(_ code: String) -> String {
    english.localizedString(forRegionCode: code).map { "\($0) (\(code))" } ?? "\"\(code)\""
  }

  /// Returns the countries whose English names are likest to a text, as they are shown.
  public static func labels(near text: String) -> [String] {
    NearNames.names(near: folded(text), in: codes.keys).compactMap { codes[$0].map(label) }
  }

  private static func folded(_ text: String) -> String {
    let plain = text.folding(options: [.caseInsensitive, .diacriticInsensitive], locale: Locale(identifier: "en_US_POSIX"))
    let words = plain.replacing("&", with: "and").replacing("st.", with: "saint").replacing("’", with: "'").split(separator: " ")
    return words.joined(separator: " ")
  }
}
