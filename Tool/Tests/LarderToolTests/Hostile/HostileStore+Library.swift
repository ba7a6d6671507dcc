import Foundation
import LarderToolKit

extension HostileStore {
  /// The prepared databases of the library's tests.
  static func databases() async throws -> [HostileStore] {
    let workspace = try Workspace()
    let bytes = try Data(contentsOf: URL(filePath: try await workspace.store(.sqliteFile)))
    let statements = HostileSchemas.otherShapes + HostileSchemas.additions
    return try statements.map { try database(bytes, $0) }
      + HostileSchemas.writtenByHand.map { try database(bytes, "PRAGMA writable_schema = ON; \($0)") }
  }

  /// Makes a database of a whole one and statements of another program.
  private static func database(_ bytes: Data, _ sql: String) throws -> HostileStore {
    let workspace = try Workspace()
    let url = workspace.url("s.sqlite")
    try bytes.write(to: url)
    do {
      let foreign = try ForeignDatabase(url)
      foreign.allowSchemaChanges()
      try foreign.run(sql)
    }
    var files: DamagePlan.Contents = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path) {
      files[name] = [UInt8](try Data(contentsOf: workspace.url(name)))
    }
    return HostileStore(description: String(sql.prefix(60)), files: files, main: "s.sqlite")
  }

  /// The JSON bombs of the library's tests, at the beginning of a main file and within its parts.
  static func bombs(size: Int) -> [HostileStore] {
    JSONBombs.all(size: size, depth: size / 2).flatMap { name, bomb in
      JSONBombs.beginnings.map {
        HostileStore(description: "\(name) behind \($0.count) bytes", files: ["s.json": Array($0.utf8) + bomb], main: "s.json")
      }
    }
  }
}
