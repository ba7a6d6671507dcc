import Foundation
import Larder
import Testing

@testable import LarderToolKit

/// CSV as Excel, LibreOffice and old programs write it: read, or refused with what was found.
@Suite struct CSVTests {
  private func `import`(_ bytes: [UInt8], id: String = "id") throws -> Result<[String: String], RepositoryError> {
    let workspace = try Workspace()
    try Data(bytes).write(to: workspace.url("source.csv"))
    let target = try StoreFile(newAt: workspace.path("new.json"))
    let options = RecordImport.Options(collection: "notes", member: id)
    do throws(RepositoryError) { _ = try RecordImport(.csv, workspace.path("source.csv"), to: target, options) } catch {
      #expect(!FileManager.default.fileExists(atPath: target.path))
      return .failure(error)
    }
    let records = try StoreReading(path: target.path).records
    return .success(Dictionary(uniqueKeysWithValues: records.map { ($0.key.text, String(decoding: $0.value ?? Data(), as: UTF8.self)) }))
  }

  private func message(_ text: String, id: String = "id") throws -> String {
    switch try `import`(Array(text.utf8), id: id) {
    case .success(let found): "imported \(found.count)"
    case .failure(let error): error.message
    }
  }

  @Test(arguments: ["\n", "\r\n", "\r"], ["", "\u{FEFF}"]) func `every line end is one`(end: String, mark: String) throws {
    let lines = ["id,n,note", "a,1,\"x\(end)y\"", "", "b,2,", "\"c\",3,\"\"\"q\"\"\""]
    let escaped = ["\n": #"\n"#, "\r\n": #"\r\n"#, "\r": #"\r"#][end] ?? ""
    for ending in ["", end] {
      #expect(
        try `import`(Array((mark + lines.joined(separator: end) + ending).utf8)).get() == [
          "a": #"{"id":"a","n":1,"note":"x\#(escaped)y"}"#, "b": #"{"id":"b","n":2}"#, "c": #"{"id":"c","n":3,"note":"\"q\""}"#,
        ])
    }
  }

  @Test func `line ends may be mixed, and are counted`() throws {
    #expect(try message("id,n\ra,1\r\nb,2\nc,3\r\r\n\rd,4") == "imported 4")
    #expect(try message("id,n\ra,1\r\n\"b\r\n\r\",2\nc\r") == "line 6: expected 2 fields as in the header, found 1")
    // A file whose lines end with LF, and that has CR within a field without quotation marks.
    #expect(try message("id,n\na\rb,1\n") == "line 2: expected 2 fields as in the header, found 1")
  }

  @Test(arguments: [
    ("name;n\n", "found one column with \";\" in its name; is the separator \";\"?"), ("id;name\n1;x\n", "one column named \"id;name\""),
    ("id\tname\r1\tx", "is the separator a tab?"), ("id|name", "is the separator \"|\"?"),
    ("sep=;\r\nid;name\r\n", "is the separator \";\"?"),
    ("\"id\";\"name\"\n", "found \";\"; is it the separator?"),
    ("name,n\n", "expected a column named \"id\", found 2 columns of other names"), ("ID,n\na,1", "did you mean ID?"),
    ("1,Jogashima\n2,Brest", "found 2 columns of other names"),
    ("\u{1B}[31m;id\n", "\"\\u{1B}[31m;id\""),
  ]) func `a header without the column is refused with what was found`(text: String, part: String) throws {
    let found = try message(text)
    #expect(found.contains(part), "\(found)")
  }

  @Test func `a header with the column alone is an empty table`() throws {
    #expect(try message("id,name\r") == "imported 0")
    #expect(try message("id") == "imported 0")
    #expect(try message("\u{FEFF}\r\n\r").contains("an empty file"))
    #expect(try message("id;name\na;1", id: "id;name") == "imported 1")
  }

  @Test func `another encoding is named`() throws {
    let utf16 = Array("id\tn\r\n".utf16).flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    for bytes in [[0xFF, 0xFE] + utf16, utf16, [0xFE, 0xFF, 0, 0x69]] {
      guard case .failure(let error) = try `import`(bytes) else { throw CocoaError(.featureUnsupported) }
      #expect(error.message.contains("UTF-16") && error.message.contains("save the file"))
    }
    guard case .failure(let error) = try `import`(Array("id,n\nZ".utf8) + [0xFC] + Array("rich,1\n".utf8)) else { return }
    #expect(error.message == "line 2: expected UTF-8, found other bytes; is it Latin-1 or Windows-1252? Save the file as CSV in UTF-8")
  }

  @Test(arguments: [10, 100]) func `a byte of zero is refused wherever it is`(count: Int) throws {
    let text = "id,n\n" + (0..<count).map { "\($0),x\n" }.joined() + "z,a\u{0}b\n"
    #expect(try message(text).contains("bytes of zero"))
  }

  /// Line ends of mainframes and of Unicode: the whole file would be a header.
  @Test(arguments: ["\u{85}", "\u{2028}", "\u{2029}", "\u{0B}", "\u{0C}", "\u{1E}"]) func `a line end that is none is refused`(end: String)
    throws
  {
    let found = try message(["id,n", "a,1", "b,2", ""].joined(separator: end))
    #expect(found.hasPrefix("line 1: expected lines that end with LF, CR LF or CR"), "\(found)")
    #expect(try message("id,n\na,x\(end)y\n") == "imported 1")
  }
}
