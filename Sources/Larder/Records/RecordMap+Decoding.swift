extension RecordMap {
  /// How many records do not decode, with the error of one of them; the others are decoded by this.
  ///
  /// Cost: linear, without decoding again what was touched before.
  func undecodable<Item>(_ coder: RecordCoder<Item>) -> (count: Int, first: RepositoryError?) {
    var count = 0
    var first: RepositoryError?
    forEach { slot in
      guard let error = slot.failure(coder) else { return }
      count += 1
      if first == nil { first = error }
    }
    return (count, first)
  }

  /// - Throws: `.decodingFailed` with the number of records that do not decode.
  func checkDecodable<Item>(_ coder: RecordCoder<Item>) throws(RepositoryError) {
    let (count, first) = undecodable(coder)
    guard let first else { return }
    throw RepositoryError(
      .decodingFailed, "\(count) of \(self.count) records do not decode; `snapshot.undecodable` lists them", keyHash: first.keyHash,
      underlying: first)
  }
}
