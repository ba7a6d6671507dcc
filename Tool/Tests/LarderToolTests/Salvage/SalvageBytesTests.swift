import Testing

@testable import LarderToolKit

@Suite struct SalvageBytesTests {
  @Test func `a text is found wherever it is`() {
    let bytes = Array("abcabd\nab".utf8)
    #expect(bytes.offset(of: "abd", in: 0..<bytes.count) == 3)
    #expect(bytes.offset(of: "ab", in: 1..<bytes.count) == 3)
    #expect(bytes.offset(of: "ab", in: 4..<8) == nil)
    #expect(bytes.offset(of: "ab", in: 4..<99) == 7)
    #expect(bytes.holds("\n", at: 6) && !bytes.holds("abc", at: 7))
  }

  @Test func `an object ends at its own brace`() {
    let bytes = Array(#"{"a":["}\"{",{}]} ,"#.utf8)
    #expect(JSONExtent.end(of: 0, in: bytes, before: bytes.count) == 17)
    #expect(JSONExtent.end(of: 0, in: bytes, before: 10) == nil)
  }
}
