import Foundation
import Larder
import Testing

@testable import LarderToolKit

@Suite struct ImportTests {
  private func values(_ path: String) throws -> [String: String] {
    let records = try StoreReading(path: path).records
    return Dictionary(uniqueKeysWithValues: records.map { ($0.key.text, String(decoding: $0.value ?? Data(), as: UTF8.self)) })
  }

  private func write(_ text: String, _ workspace: Workspace, _ name: String = "source") throws -> String {
    try Data(text.utf8).write(to: workspace.url(name))
    return workspace.path(name)
  }

  /// Imports a text, and returns what the store holds then, or the error.
  private func result(of kind: ImportKind, _ text: String, _ change: (inout RecordImport.Options) -> Void = { _ in }) throws -> Result<
    [String: String], RepositoryError
  > {
    let workspace = try Workspace()
    let source = try write(text, workspace)
    let target = try StoreFile(newAt: workspace.path("new.json"))
    var options = RecordImport.Options(collection: "notes", member: "id")
    change(&options)
    do throws(RepositoryError) { _ = try RecordImport(kind, source, to: target, options) } catch {
      #expect(!FileManager.default.fileExists(atPath: target.path))
      return .failure(error)
    }
    return .success(try values(target.path))
  }

  private func message(_ kind: ImportKind, _ text: String) throws -> String {
    switch try result(of: kind, text) {
    case .success: "imported"
    case .failure(let error): error.message
    }
  }

  @Test func `an array keeps numbers digit by digit, and sorts names`() throws {
    let found = try result(
      of: .array, "\u{FEFF}[ {\"id\" : 7,\n \"b\":1.50,\"a\":[ 1 ]}\n,{\"id\":12345678901234567890,\"text\":\"é\\n\"}]\n"
    ).get()
    #expect(found == ["7": #"{"a":[1],"b":1.50,"id":7}"#, "12345678901234567890": "{\"id\":12345678901234567890,\"text\":\"é\\n\"}"])
    #expect(try result(of: .array, "[]").get() == [:])
  }

  @Test func `an array that is none is refused with the line`() throws {
    #expect(try message(.array, "[\n{\"id\":1},\n{\"id\":2]").hasPrefix("line 3: "))
    #expect(try message(.array, "{\"id\":1}").contains("expected an array"))
    #expect(try message(.array, "[{\"id\":1},\n\n{\"name\":2}]").hasPrefix("line 3: expected a text or an integer as `id`"))
    #expect(try message(.array, "[{\"id\":1},\n{\"id\":2.5}]").hasPrefix("line 2: "))
    #expect(try message(.array, "[{\"id\":1},\r{\"id\":1}]").hasPrefix("line 2: the id occurs in line 1 too"))
  }

  @Test func `of equal ids the first or the last counts where that is asked for`() throws {
    let text = "[{\"id\":1,\"n\":1},{\"id\":2},{\"id\":1,\"n\":2}]"
    #expect(try result(of: .array, text) { $0.duplicates = .first }.get()["1"] == #"{"id":1,"n":1}"#)
    #expect(try result(of: .array, text) { $0.duplicates = .last }.get()["1"] == #"{"id":1,"n":2}"#)
  }

  @Test func `the types of columns are those of all their values`() throws {
    let text = "\u{FEFF}id,zip,n,ok,note\r\na,01234,1.50,true,\"x, \"\"y\"\"\r\nz\"\r\n\r\nb,99,,false,\r\n"
    #expect(
      try result(of: .csv, text).get() == [
        "a": #"{"id":"a","n":1.50,"note":"x, \"y\"\r\nz","ok":true,"zip":"01234"}"#, "b": #"{"id":"b","ok":false,"zip":"99"}"#,
      ])
    #expect(
      try result(of: .csv, text) { $0.isText = true }.get()["b"] == #"{"id":"b","n":"","note":"","ok":"false","zip":"99"}"#)
    #expect(try message(.csv, "id,n,").contains("a name of its own"))
  }

  @Test func `a bad row is refused with its line`() throws {
    #expect(try message(.csv, "id,n\na,1\n\nb\n") == "line 4: expected 2 fields as in the header, found 1")
    #expect(try message(.csv, "id,n\n\"a\nb\",1\nc\"d,2\n").hasPrefix("line 4: expected quotation marks"))
    #expect(try message(.csv, "id,n\n\"a\nb,1\n").hasPrefix("line 2: expected a closing"))
    #expect(
      try message(.csv, "id,n\n\"a\"b,1\n").hasPrefix(
        "line 2: expected a comma or the end of the line behind a closing quotation mark"))
    #expect(try message(.csv, "id,id\n").contains("an earlier one in column 2"))
    #expect(try message(.csv, "").contains("an empty file"))
    #expect(try message(.csv, "id,n\n,1\n").hasPrefix("line 2: expected a text or an integer as `id`"))
  }

  @Test func `the objects of a directory are imported, and what is no JSON is named`() throws {
    let workspace = try Workspace()
    try FileManager.default.createDirectory(at: workspace.url("Notes/folder"), withIntermediateDirectories: true)
    for number in 0..<5 { _ = try write("{\"id\":\"note \(number)\",\n\"n\":\(number)}", workspace, "Notes/HASH-\(number)") }
    let options = RecordImport.Options(collection: "notes", member: "id")
    let target = try StoreFile(newAt: workspace.path("new.sqlite"))
    _ = try RecordImport(.bodega, workspace.path("Notes"), to: target, options)
    #expect(try values(target.path).count == 5)
    #expect(try values(target.path)["note 3"] == #"{"id":"note 3","n":3}"#)
    let bad = try write("{", workspace, "Notes/HASH-9")
    let error = #expect(throws: RepositoryError.self) { try RecordImport(.bodega, workspace.path("Notes"), to: target, options) }
    #expect(error?.file == bad)
  }

  @Test func `a database of Bodega is imported, and a damaged one is refused`() throws {
    let workspace = try Workspace()
    var bytes = try #require(BodegaDatabase.bytes())
    try bytes.write(to: workspace.url("Notes.sqlite3"))
    let options = RecordImport.Options(collection: "notes", member: "id")
    let target = try StoreFile(newAt: workspace.path("new.sqlite"))
    _ = try RecordImport(.bodega, workspace.path("Notes.sqlite3"), to: target, options)
    let found = try values(target.path)
    #expect(found.count == 12)
    #expect(found["note 7"]?.utf8.count == 25 + 900 && found["note 0"] == #"{"id":"note 0","text":""}"#)
    bytes[512 * 4] = 0xFF
    bytes[512 * 1] = 0xFF
    try bytes.write(to: workspace.url("Notes.sqlite3"))
    #expect(throws: RepositoryError.self) { try RecordImport(.bodega, workspace.path("Notes.sqlite3"), to: target, options) }
  }

  @Test(arguments: StoreKind.allCases) func `an import into a store that is there is repeated without a change`(kind: StoreKind)
    async throws
  {
    let workspace = try Workspace()
    let store = try await workspace.store(kind)
    let source = try write("id,rating\nbrest,5\nnew,1\n", workspace)
    let arguments = ["import", "csv", source, "--to", store, "--collection", "spots", "--id", "id"]
    #expect(try await larder(arguments + ["--dry-run"]).output.contains("would be loaded into \(store): 1 added, 1 changed"))
    #expect(try await larder(arguments).output.contains("loaded into \(store): 1 added, 1 changed, 0 deleted, 0 unchanged"))
    let before = try Data(contentsOf: URL(filePath: store))
    #expect(try await larder(arguments).output.contains("0 added, 0 changed, 0 deleted, 2 unchanged"))
    #expect(try StoreReading(path: store).report.commit.number == 5)
    if kind == .jsonFile { #expect(try Data(contentsOf: URL(filePath: store)) == before) }
    #expect(try await larder("import", "xml", source, "--to", store, "--collection", "spots", "--id", "id").code == 64)
  }

  @Test func `a value that an app would not read is refused with its line`() async throws {
    func nested(_ depth: Int) -> String { String(repeating: "[", count: depth) + String(repeating: "]", count: depth) }
    #expect(try result(of: .array, "[{\"id\":1,\"x\":\(nested(63))}]").get().count == 1)
    for depth in [64, 100, 125] {
      #expect(
        try message(.array, "[{\"id\":1},\n{\"id\":2,\"x\":\(nested(depth))}]").hasPrefix(
          "line 2: expected a value of at most 64 nested levels, found \(depth + 1)"))
    }
  }

  @Test(arguments: [0, -1, 2_147_483_648]) func `a schema version out of bounds is refused with them`(version: Int) throws {
    guard case .failure(let error) = try result(of: .array, "[{\"id\":1}]", { $0.version = version }) else { return }
    #expect(error.message == "expected a schema version from 1 to 2147483647, found \(version)")
  }
}
