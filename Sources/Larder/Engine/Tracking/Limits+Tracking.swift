extension StoreOptions.Limits {
  /// The largest limits that there are.
  static let largest = Self(recordBytes: .max, keyBytes: .max, jsonDepth: .max)

  /// Returns the limits of the records of a collection; `nil` for those that sync keeps beside the app's: their keys and values hold those
  /// of the app, which are within the limits, and so are longer and deeper than these.
  func holding(for collection: String) -> Self? { collection.hasPrefix("larder.sync.") ? nil : self }
}
