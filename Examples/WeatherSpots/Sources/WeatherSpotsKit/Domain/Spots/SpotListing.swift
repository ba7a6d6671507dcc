extension Spot {
  /// Returns whether one spot comes before another in lists and exports, which are sorted by name and then by id.
  public static func listedBefore(_ left: Spot, _ right: Spot) -> Bool {
    left.name == right.name ? left.id < right.id : left.name < right.name
  }
}
