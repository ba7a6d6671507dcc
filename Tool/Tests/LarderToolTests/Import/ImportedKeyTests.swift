import Foundation
import Larder
import Testing

@testable import LarderToolKit

/// What is imported can be read as the type that the import names.
@Suite struct ImportedKeyTests {
  private struct Note<ID: Hashable & Codable & Sendable>: Codable, Identifiable, Sendable { let id: ID }

  private static let lower = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
  private static let mixed = "3F2504e0-4F89-11D3-9A0C-0305E82C3302"
  private static let upper = "3F2504E0-4F89-11D3-9A0C-0305E82C3303"

  /// An import, and the folder of the new store.
  private struct Imported {
    let run: Run
    let file: StoreFile
    let workspace: Workspace
  }

  /// Imports an array of objects with ids as they stand in JSON.
  private func imports(_ ids: [String], _ type: String? = nil, to kind: StoreKind = .jsonFile) async throws -> Imported {
    let workspace = try Workspace()
    let file = try StoreFile(newAt: workspace.path("new.\(kind.rawValue)"))
    try Data("[\n\(ids.map { "{\"id\":\($0)}" }.joined(separator: ",\n"))\n]".utf8).write(to: workspace.url("source"))
    let arguments = ["import", "array", workspace.path("source"), "--to", file.path, "--collection", "notes", "--id", "id", "--json"]
    let run = try await larder(arguments + (type.map { ["--id-type", $0] } ?? []))
    return Imported(run: run, file: file, workspace: workspace)
  }

  /// Returns the number of records that an app with ids of a type reads, and expects that each is found by its id.
  private func count<ID: Hashable & Codable & Sendable>(_ type: ID.Type, in imported: Imported) async throws -> Int {
    let notes = try await LocalRepository(backend: imported.file.backend, schema: RepositorySchema<Note<ID>>("notes"))
    let all = try await notes.loadAll()
    for note in all { #expect(try await notes.find(by: note.id) != nil) }
    #expect(notes.openReport.isClean == !all.isEmpty)
    try await notes.close()
    return all.count
  }

  @Test(arguments: StoreKind.allCases) func `UUIDs in any case are found by an app with UUIDs`(kind: StoreKind) async throws {
    let imported = try await imports([Self.lower, Self.mixed, Self.upper].map { "\"\($0)\"" }, "uuid", to: kind)
    #expect(imported.run.code == 0 && imported.run.output.contains(#""idType":"uuid""#), "\(imported.run)")
    #expect(try await count(UUID.self, in: imported) == 3)
  }

  @Test func `UUIDs in lower case are refused until their type is named`() async throws {
    for ids in [[Self.lower], [Self.upper, Self.mixed]] {
      let imported = try await imports(ids.map { "\"\($0)\"" })
      #expect(
        imported.run.code == 2 && imported.run.errors.contains("line \(ids.count + 1): ") && imported.run.errors.contains("--id-type uuid"),
        "\(imported.run)")
      #expect(!FileManager.default.fileExists(atPath: imported.file.path))
    }
    let texts = try await imports(["\"\(Self.lower)\""], "text")
    #expect(texts.run.code == 0)
    #expect(try await count(String.self, in: texts) == 1)
    #expect(try await count(UUID.self, in: texts) == 0)
  }

  @Test func `UUIDs in upper case are those of both types`() async throws {
    let imported = try await imports(["\"\(Self.upper)\""])
    #expect(imported.run.output.contains(#""idType":"uuid""#))
    #expect(try await count(UUID.self, in: imported) == 1)
    #expect(try await count(String.self, in: imported) == 1)
  }

  @Test func `texts of which some are UUIDs are texts`() async throws {
    let imported = try await imports(["\"\(Self.lower)\"", "\"other\"", #""caf\u00e9""#, #""""#])
    #expect(imported.run.output.contains(#""idType":"text""#))
    #expect(try await count(String.self, in: imported) == 4)
  }

  @Test func `integers have the key of their number`() async throws {
    let imported = try await imports(["-0", "1", "-9223372036854775808", "9223372036854775807"])
    #expect(imported.run.output.contains(#""idType":"integer""#), "\(imported.run)")
    #expect(try await count(Int.self, in: imported) == 4)
    let large = try await imports(["18446744073709551615", "1"], "integer")
    #expect(try await count(UInt64.self, in: large) == 2)
  }

  @Test(arguments: [
    (["1", "\"1\""], nil), (["\"a\"", "1"], nil), (["1", "1.0"], nil), (["1e2"], nil), (["18446744073709551616"], nil), (["true"], nil),
    (["{}"], nil), (["null"], nil), (["\"a\""], "uuid"), (["1"], "uuid"), (["1"], "text"), (["\"1\""], "integer"),
    (["\"{\(lower)}\""], "uuid"), (["\"\(lower) \""], "uuid"), (["\"\(lower.replacing("-", with: ""))\""], "uuid"),
  ]) func `ids that no one type reads are refused with their line`(ids: [String], type: String?) async throws {
    let imported = try await imports(ids, type)
    #expect(imported.run.code == 2 && imported.run.errors.contains("line \(ids.count + 1): expected "), "\(ids), \(imported.run)")
    #expect(!FileManager.default.fileExists(atPath: imported.file.path))
  }

  @Test func `ids that are one as their type are duplicates`() async throws {
    let imported = try await imports(["\"\(Self.lower)\"", "\"\(Self.lower.uppercased())\""], "uuid")
    #expect(imported.run.code == 2 && imported.run.errors.contains("the id occurs in line 2 too"), "\(imported.run)")
  }

  @Test func `digits in a column of CSV are texts for an app with texts`() async throws {
    let workspace = try Workspace()
    let file = try StoreFile(newAt: workspace.path("new.json"))
    try Data("id,lat\n75001,48.1\n02100,49.8\n".utf8).write(to: workspace.url("source"))
    let arguments = ["import", "csv", workspace.path("source"), "--to", file.path, "--collection", "notes", "--id", "id", "--json"]
    let run = try await larder(arguments + ["--id-type", "text"])
    #expect(run.code == 0, "\(run.errors)")
    #expect(try await count(String.self, in: Imported(run: run, file: file, workspace: workspace)) == 2)
  }

  @Test(arguments: [nil, "integer"]) func `integers are declared by the type that holds all of them`(type: String?) async throws {
    let (small, large) = (["-9223372036854775808", "9223372036854775807"], ["0", "18446744073709551615"])
    for (ids, declaration) in [(small, "let id: Int`"), (large, "let id: UInt64`")] {
      let workspace = try Workspace()
      let text = "[\(ids.map { "{\"id\":\($0)}" }.joined(separator: ",\n"))]"
      try Data(text.utf8).write(to: workspace.url("source"))
      let arguments = [
        "import", "array", workspace.path("source"), "--to", workspace.path("new.json"), "--collection", "notes", "--id", "id",
      ]
      let run = try await larder(arguments + (type.map { ["--id-type", $0] } ?? []))
      #expect(run.code == 0 && run.output.contains("read them with `\(declaration)"), "\(run)")
    }
    let imported = try await imports(large, type)
    #expect(try await count(UInt64.self, in: imported) == 2)
  }

  @Test(arguments: [nil, "integer"]) func `integers that no type of 64 bits holds together are refused`(type: String?) async throws {
    for ids in [["-1", "5", "9223372036854775808"], ["9223372036854775808", "5", "-1"]] {
      let imported = try await imports(ids, type)
      #expect(imported.run.code == 2 && imported.run.errors.contains("line 4: expected integers as `id` that one type of 64 bits holds"))
      #expect(imported.run.errors.contains("line 2"), "\(imported.run)")
      #expect(!FileManager.default.fileExists(atPath: imported.file.path))
    }
  }
}
