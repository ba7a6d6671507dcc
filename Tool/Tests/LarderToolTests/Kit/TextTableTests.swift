import Foundation
@_spi(Inspection) import Larder
import LarderToolKit
import Testing

@Suite struct TextTableTests {
  private var table: TextTable {
    var table = TextTable(["key", "name", "rating"])
    table.add([.init("1"), .init("城ヶ島の桟橋"), .init(number: "5")])
    table.add([.init("long key"), .init("a\u{1B}[31mb\nc"), .init(number: "10")])
    return table
  }

  @Test func `columns are aligned, wide characters included, and nothing steers the terminal`() {
    #expect(
      table.lines(width: nil) == [
        "key       name             rating", "1         城ヶ島の桟橋          5", "long key  a\\u{1B}[31mb\\nc      10",
      ])
  }

  @Test(arguments: 1...40) func `no line is wider than the terminal`(width: Int) {
    for line in table.lines(width: width) { #expect(TerminalText.width(of: line) <= width) }
  }

  @Test func `JSON over several lines keeps every digit`() throws {
    let value: JSONValue = try JSONValue(json: .init(#"{"b":[1.50,{}],"a":"x\ny","c":[]}"#.utf8))
    #expect(
      PrettyJSON.lines(of: value) == ["{", #"  "a": "x\ny","#, #"  "b": ["#, "    1.50,", "    {}", "  ],", #"  "c": []"#, "}"])
  }
}
