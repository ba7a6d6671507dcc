extension Spot {
  /// Returns the order in which spots are listed and exported: by name, then by id.
  public static func listedBefore(_ left: Spot, _ right: Spot) -> Bool {
    left.name == right.name ? left.id < right.id : left.name < right.name
  }
}
