// Former names, for rooms that are being rewritten.

typealias ParallelWork = ConcurrentMap

extension ConcurrentMap {
  static func map<Element: Sendable, Output: Sendable>(_ elements: [Element], _ transform: @Sendable (Element) -> Output) -> [Output] {
    blockingMap(elements, transform)
  }
  static func mapParts<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @Sendable (ArraySlice<Element>) -> Output
  ) -> [Output] { blockingParts(elements, transform) }
  static func sorted<Element: Comparable & Sendable>(_ elements: [Element]) -> [Element] { blockingSorted(elements) }
}

enum ParallelDecoding {
  static let chunk = ConcurrentMap.partSize
  static func items<Item>(_ records: RecordMap, _ coder: RecordCoder<Item>) async -> [Item] { await records.items(coder) }
  static func touch<Item>(_ records: RecordMap, _ coder: RecordCoder<Item>) async { await records.decode(coder) }
  nonisolated(nonsending) static func undecodableCount<Item>(_ records: RecordMap, _ coder: RecordCoder<Item>) async -> Int {
    await records.undecodableCount(coder)
  }
}

enum ParallelEncoding {
  static func records<Item>(
    _ items: [Item], _ coder: RecordCoder<Item>, decoding: Bool
  ) async throws(RepositoryError) -> [EncodedRecord] { try await coder.encodeAll(items, decoding: decoding) }
}
