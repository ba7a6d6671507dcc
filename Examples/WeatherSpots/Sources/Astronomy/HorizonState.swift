/// Whether the Sun or the Moon rises, sets, or stays on one side of the horizon during a day.
public enum HorizonState: String, Hashable, Sendable, Codable {
  /// The body rises and sets, in either order, and may do either twice.
  case risesAndSets = "rises_and_sets"
  /// The body rises and is still up when the day ends.
  case risesOnly = "rises_only"
  /// The body is up when the day begins, and sets for the rest of the day.
  case setsOnly = "sets_only"
  /// The body is above the horizon all day.
  case alwaysUp = "always_up"
  /// The body is below the horizon all day.
  case alwaysDown = "always_down"

  init(_ crossings: Crossings, isUp: Bool) {
    switch (crossings.upward.isEmpty, crossings.downward.isEmpty) {
    case (false, false): self = .risesAndSets
    case (false, true): self = .risesOnly
    case (true, false): self = .setsOnly
    // Without a crossing, the altitude at any instant of the day decides.
    case (true, true): self = isUp ? .alwaysUp : .alwaysDown
    }
  }
}
