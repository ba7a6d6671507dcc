public import Astronomy

extension WeatherCode {
  /// Returns a symbol for the kind of weather, one or two columns wide.
  ///
  /// The symbol is empty in plain text and for codes without a description.
  ///
  /// - Parameter isNight: Whether the symbol of a clear sky is the Moon and not the Sun.
  public func symbol(isNight: Bool = false, isPlain: Bool = false) -> String {
    guard !isPlain else { return "" }
    return switch rawValue {
    case 0, 1: isNight ? "☾" : "☀"
    case 2: "⛅"
    case 3: "☁"
    case 45, 48: "🌁"
    case 51, 53, 55, 56, 57: "☂"
    case 61, 63, 65, 66, 67, 80, 81, 82: "☔"
    case 71, 73, 75, 77, 85, 86: "❄"
    case 95, 96, 99: "⚡"
    default: ""
    }
  }
}

extension MoonPhase {
  /// Returns the emoji of the phase as seen from the northern or southern hemisphere, two columns wide.
  public func symbol(isSouthern: Bool) -> String {
    let faces = ["🌑", "🌒", "🌓", "🌔", "🌕", "🌖", "🌗", "🌘"]
    let index = Self.allCases.firstIndex(of: self) ?? 0
    // South of the equator the Moon appears turned over, so a waxing Moon has the face of a waning one.
    return faces[isSouthern ? (8 - index) % 8 : index]
  }
}
