/// The relation of a body to the horizon during a day.
public enum HorizonState: String, Hashable, Sendable, Codable {
  /// It rises and sets; which comes first is not said, and either may happen twice.
  case risesAndSets = "rises_and_sets"
  /// It rises and is still up when the day ends.
  case risesOnly = "rises_only"
  /// It is up when the day begins, and sets for the rest of it.
  case setsOnly = "sets_only"
  /// It is above the horizon all day.
  case alwaysUp = "always_up"
  /// It is below the horizon all day.
  case alwaysDown = "always_down"

  init(_ crossings: Crossings, isUp: Bool) {
    switch (crossings.upward.isEmpty, crossings.downward.isEmpty) {
    case (false, false): self = .risesAndSets
    case (false, true): self = .risesOnly
    case (true, false): self = .setsOnly
    case (true, true): self = isUp ? .alwaysUp : .alwaysDown
    }
  }
}
