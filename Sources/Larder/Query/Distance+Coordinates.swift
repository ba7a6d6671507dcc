extension Distance {
  /// Returns the great-circle distance of two places, on a sphere with Earth's mean radius of 6,371,008.8 m.
  ///
  /// It is the distance that `near` orders by, to the last bit. Poles, the date line and opposite points need no care; the sphere is up to
  /// 0.6 % off the shape of the Earth.
  ///
  /// ```swift
  /// let distance = Distance.between((latitude: 35.13, longitude: 139.61), (latitude: 51.48, longitude: 0))
  /// ```
  ///
  /// - Parameters:
  ///   - first: Degrees north, from -90 to 90, and degrees east; whole turns are taken off.
  ///   - second: The other place, likewise.
  /// - Returns: The distance; `nil` for a latitude beyond ±90 and for numbers that are not finite.
  public static func between(
    _ first: (latitude: Double, longitude: Double), _ second: (latitude: Double, longitude: Double)
  ) -> Distance? {
    guard let from = GeoCoordinate(latitude: first.latitude, longitude: first.longitude),
      let to = GeoCoordinate(latitude: second.latitude, longitude: second.longitude)
    else { return nil }
    return .meters(GreatCircle.distance(from, to))
  }
}
