/// A value with a plain number as its id, which cannot be encoded when it is not finite.
struct Measurement: Codable, Identifiable, Hashable, Sendable {
  let id: Int
  var value: Double
}
