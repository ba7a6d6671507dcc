/// Encoding many values at once, on as many cores as there are.
enum ParallelEncoding {
  /// The values as records, in their order.
  /// - Throws: the error of the first value that cannot be encoded.
  @concurrent static func records<Item>(
    _ items: [Item], _ coder: RecordCoder<Item>, decoding: Bool
  ) async throws(RepositoryError) -> [EncodedRecord] {
    let chunk = ParallelDecoding.chunk
    guard items.count > chunk else { return try encode(items[...], coder, decoding) }
    let parts = await withTaskGroup(of: (Int, Result<[EncodedRecord], RepositoryError>).self) { group in
      for start in stride(from: 0, to: items.count, by: chunk) {
        let part = items[start..<min(start + chunk, items.count)]
        group.addTask {
          do throws(RepositoryError) { return (start, .success(try encode(part, coder, decoding))) } catch {
            return (start, .failure(error))
          }
        }
      }
      var parts: [(Int, Result<[EncodedRecord], RepositoryError>)] = []
      for await part in group { parts.append(part) }
      return parts.sorted { $0.0 < $1.0 }
    }
    var records: [EncodedRecord] = []
    records.reserveCapacity(items.count)
    for (_, part) in parts { records += try part.get() }
    return records
  }

  private static func encode<Item>(
    _ items: ArraySlice<Item>, _ coder: RecordCoder<Item>, _ decoding: Bool
  ) throws(RepositoryError) -> [EncodedRecord] {
    var records: [EncodedRecord] = []
    records.reserveCapacity(items.count)
    for item in items { records.append(try coder.encode(item, decoding: decoding)) }
    return records
  }
}
