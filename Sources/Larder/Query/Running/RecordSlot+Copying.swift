extension RecordSlot {
  /// Copies the value, decoded at the first call, into memory that holds none yet.
  /// - Throws: as ``decoded(_:)``.
  func copyValue<Item>(_ coder: RecordCoder<Item>, to memory: UnsafeMutablePointer<Item>) throws(RepositoryError) {
    // It lives as long as this slot: nothing counts a reference to it.
    if let value = unretainedValue, value._withUnsafeGuaranteedRef({ coder.copy($0, to: memory) }) { return }
    try decoded(coder).copy(to: memory)
  }
}

extension RecordCoder {
  /// Copies a decoded value into memory that holds none yet.
  /// - Returns: `false` for one that a repository of another type has decoded.
  func copy(_ value: any DecodedRecord, to memory: UnsafeMutablePointer<Item>) -> Bool {
    guard let value = typed(value) else { return false }
    value.copy(to: memory)
    return true
  }
}

extension DecodedValue {
  /// Copies the value into memory that holds none yet.
  ///
  /// Not inlined, as ``copy()``.
  @inline(never) func copy(to memory: UnsafeMutablePointer<Item>) { memory.initialize(to: item) }
}
