/// A reader of one property of values: at its place in memory where the property is stored in the value itself, which costs a fraction of
/// following the key path.
struct PropertyReader<Root, Value>: Sendable {
  private let keyPath: any KeyPath<Root, Value> & Sendable
  /// The distance of the property from the beginning of the value; `nil` for one that is computed, observed, or behind a reference.
  private let offset: Int?

  init(_ keyPath: any KeyPath<Root, Value> & Sendable) {
    self.keyPath = keyPath
    offset = MemoryLayout<Root>.offset(of: keyPath as KeyPath<Root, Value>)
  }

  /// Returns the property of a value.
  func callAsFunction(_ root: Root) -> Value {
    guard let offset else { return root[keyPath: keyPath as KeyPath<Root, Value>] }
    return withUnsafeBytes(of: root) { bytes in
      guard let base = bytes.baseAddress else { return root[keyPath: keyPath as KeyPath<Root, Value>] }
      return base.advanced(by: offset).assumingMemoryBound(to: Value.self).pointee
    }
  }
}
