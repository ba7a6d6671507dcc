import Testing

@testable import WeatherSpotsKit

@Suite struct CSVReaderTests {
  private func rows(_ text: String) -> [Result<[String], RowProblem>] { CSVReader(Array(text.utf8)).map { $0.map(\.fields) } }

  @Test func quotedFieldsHoldCommasQuotesAndLineEnds() {
    #expect(rows("a,\"b,c\",\"say \"\"hi\"\"\",\"x\ny\"\n") == [.success(["a", "b,c", "say \"hi\"", "x\ny"])])
  }

  @Test(arguments: [
    "a,b\nc,d\n", "a,b\r\nc,d\r\n", "a,b\nc,d", "\u{FEFF}a,b\nc,d\n", "\na,b\n\r\n\nc,d\r\n\n", "a,b\rc,d\r", "\u{FEFF}a,b\r\rc,d",
    "\"a\",b\r\r\nc,\"d\"\r",
  ])
  func lineEndsMarksAndEmptyLinesMakeNoDifference(_ text: String) { #expect(rows(text) == [.success(["a", "b"]), .success(["c", "d"])]) }

  @Test func emptyFieldsAreKept() { #expect(rows(",\n\"\",x,\n") == [.success(["", ""]), .success(["", "x", ""])]) }

  @Test func anEmptyFileHasNoRecords() {
    #expect(rows("").isEmpty)
    #expect(rows("\n\r\n").isEmpty)
  }

  @Test func linesAreCountedThroughQuotedLineEnds() {
    let records = CSVReader(Array("a,\"1\n2\n3\"\nb,c\n".utf8)).map { row in row.map(\.line) }
    #expect(records == [.success(1), .success(4)])
    let mixed = CSVReader(Array("a,\"1\r2\r\n3\n4\"\rb,c\r\nd,\"e\"f\r\rg,h".utf8)).map { row in row.map(\.line) }
    #expect(
      mixed == [
        .success(1), .success(5), .failure(RowProblem(line: 6, column: 6, reason: "text after the closing quotation mark")), .success(8),
      ])
  }

  private static let behind = "text after the closing quotation mark"

  @Test(arguments: [
    (Array("a,b\"c\nd,e\n".utf8), 1, 4, "quotation mark inside a field that does not start with one", ["d", "e"]),
    (Array("\"a\"b,c\nd,e".utf8), 1, 4, behind, ["d", "e"]), ([0x61, 0x2C, 0xFF, 0x0A, 0x62], 1, 3, "not UTF-8", ["b"]),
    (Array("\"a\nb\"x\nc".utf8), 2, 3, behind, ["c"]), (Array("\"a\rb\"x\nc".utf8), 2, 3, behind, ["c"]),
    (Array("\"a\r\nb\"x\nc".utf8), 2, 3, behind, ["c"]),
  ])
  func aFaultIsReportedAtItsPlaceAndReadingGoesOn(_ bytes: [UInt8], _ line: Int, _ column: Int, _ reason: String, _ next: [String]) {
    let rows = CSVReader(bytes).map { $0.map(\.fields) }
    #expect(rows == [.failure(RowProblem(line: line, column: column, reason: reason)), .success(next)])
  }

  @Test func anOpenQuotationMarkIsReportedWhereItOpens() {
    let problem = RowProblem(line: 2, column: 3, reason: "quotation mark without an end")
    #expect(rows("x,y\né,\"never\nended") == [.success(["x", "y"]), .failure(problem)])
  }
}
