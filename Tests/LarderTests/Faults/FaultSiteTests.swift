import Foundation
import TestSupport
import Testing

@Suite("The table of fault sites")
struct FaultSiteTests {
  private static let traces = ProcessInfo.processInfo.environment["LARDER_FAULT_SITES"]

  @Test func everyCallOfTheSeamIsInTheTable() throws {
    func counts(_ sites: [SeamSite]) -> [String: Int] { sites.reduce(into: [:]) { $0[$1.description, default: 0] += 1 } }
    let (found, kept) = (counts(try SeamSite.scan()), counts(try FaultSiteTable().rows.map(\.site)))
    for site in Set(found.keys).union(kept.keys).sorted() where found[site] != kept[site] {
      Issue.record("\(site): \(found[site] ?? 0) calls in the sources, \(kept[site] ?? 0) in the table: run Scripts/Torture/fault-sites.sh")
    }
    #expect(found.count > 100)
  }

  @Test func everySiteMeetsEveryFaultOnceOrSaysWhyNot() throws {
    for row in try FaultSiteTable().rows where row.once < row.possible {
      let faults = row.missing.joined(separator: ", ")
      #expect(row.reason.count > 10, "\(row.site) does not meet \(faults): give it these, or say in the table why it cannot be")
    }
  }

  /// The scan knows an open file by its name.
  @Test func openFilesHaveNamesThatTheScanKnows() throws {
    for product in ["Larder", "LarderBlobs", "LarderSQLite"] {
      let folder = SeamSite.root.appendingPathComponent("Sources/" + product)
      for path in (FileManager.default.enumerator(atPath: folder.path)?.allObjects ?? []).compactMap({ $0 as? String })
      where path.hasSuffix(".swift") && !path.hasPrefix("FileSystem/") {
        let text = try String(contentsOf: folder.appendingPathComponent(path), encoding: .utf8)
        guard text.contains("OpenFile") || text.contains("fileSystem") else { continue }
        let names =
          text.matches(of: /let ([a-zA-Z]+) = try [a-zA-Z.]*fileSystem\.(?:open|create)\(/).map(\.output.1)
          + text.matches(of: /([a-zA-Z]+): \(?any OpenFile(?!\) throws)/).map(\.output.1)
        for name in names { #expect(SeamSite.fileNames.contains(String(name)), "\(path): \(name)") }
      }
    }
  }

  @Test func aCallIsFoundInItsFunction() {
    let text = """
      extension Store {
        func save() throws {
          // fileSystem.remove(path)
          try fileSystem.rename(a, to: b)
        }
        init() { try file.sync() }
      """
    let sites = SeamSite.scan(text, "Sources/Larder/A.swift")
    #expect(sites.map(\.description) == ["Sources/Larder/A.swift | save | rename", "Sources/Larder/A.swift | init | sync"])
    #expect(sites.map(\.line) == [4, 6])
  }

  /// Renews the table from the traces of `Scripts/Torture/fault-sites.sh`.
  @Test(.enabled(if: traces != nil)) func theTableIsRenewed() throws {
    let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let (table, unknown) = try FaultSiteTable.renewed(from: try #require(Self.traces), program: program)
    for place in unknown { Issue.record("a call that the scan does not know: \(place)") }
    try Data(table.text.utf8).write(to: FaultSiteTable.file)
  }
}
