extension Duration {
  /// The duration in seconds, rounded to what a `Double` holds.
  package var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
