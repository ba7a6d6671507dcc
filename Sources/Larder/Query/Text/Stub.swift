struct TextIndex: Sendable {
  init(_ e: [(RecordSlot, [String])]) {}
  mutating func insert(_ s: RecordSlot, texts: [String]) {}
  mutating func remove(_ k: RecordKey, texts: [String]) {}
  func estimate(_ w: String) -> Int { 0 }
  func search(_ w: String, limit: Int?) -> [(slot: RecordSlot, score: Double)] { [] }
}
public struct TextExtract: Hashable, Sendable { init(of: [String], matching: String) {} }
