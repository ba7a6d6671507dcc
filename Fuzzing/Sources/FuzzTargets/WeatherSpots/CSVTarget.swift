import Foundation

@testable import WeatherSpotsKit

/// Files of spots: what is wrong is reported where it stands, and what was read is written so that it is read as the same.
///
/// The first byte of an input says whether the names of all columns are put before the rest.
enum CSVTarget {
  private static let header = Array((SpotField.allCases.map(\.rawValue).joined(separator: ",") + "\n").utf8)

  @Sendable static func run(_ bytes: UnsafeRawBufferPointer) throws {
    var input = FuzzInput(bytes)
    let file = (input.bool() ? header : []) + Array(input.rest)
    try checkRows(of: file)
    let read = SpotsCSV(file)
    for problem in read.problems + [read.headerProblem].compactMap({ $0 }) { try check(problem, of: file) }
    let written = SpotsCSV(Array(Spot.csv(read.spots).utf8))
    try promise(written.problems.isEmpty, "a spot that was read is not written as one: \(written.problems)")
    try promise(written.spots == read.spots.sorted(by: Spot.listedBefore), "spots are not read as they were written")
    for (spot, again) in zip(read.spots.sorted(by: Spot.listedBefore), written.spots) {
      try promise(spot.id.utf8.elementsEqual(again.id.utf8), "a spot has another id when it is read again")
    }
  }

  /// Checks the rows without what is in them: each is read again from its own fields.
  private static func checkRows(of file: [UInt8]) throws {
    var reader = CSVReader(file)
    var (rows, line): ([[String]], Int) = ([], 0)
    while let row = reader.next() {
      try promise(reader.position <= file.count, "the reader is behind the end")
      switch row {
      case .failure(let problem): try check(problem, of: file)
      case .success(let record):
        try promise(record.line > line, "a row of line \(record.line) comes behind one of line \(line)")
        line = record.line
        rows.append(record.fields)
      }
    }
    var again: [[String]] = []
    for row in CSVReader(written(rows)) { again.append(try row.get().fields) }
    let isSame = again.elementsEqual(rows) { $0.elementsEqual($1) { $0.utf8.elementsEqual($1.utf8) } }
    try promise(isSame, "rows are not read as they were written")
  }

  /// Returns rows as a file in which all fields are quoted.
  private static func written(_ rows: [[String]]) -> [UInt8] {
    var file: [UInt8] = []
    for row in rows {
      for (index, field) in row.enumerated() {
        file += (index == 0 ? "\"" : ",\"").utf8
        for byte in field.utf8 {
          if byte == UInt8(ascii: "\"") { file.append(byte) }
          file.append(byte)
        }
        file.append(UInt8(ascii: "\""))
      }
      file += "\r\n".utf8
    }
    return file
  }

  private static func check(_ problem: RowProblem, of file: [UInt8]) throws {
    let lines = file.count { $0 == UInt8(ascii: "\n") } + 1
    try promise((1...lines).contains(problem.line), "a problem is in line \(problem.line) of \(lines)")
    try promise((1...(file.count + 1)).contains(problem.column), "a problem is in column \(problem.column)")
  }
}
