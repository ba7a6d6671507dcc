import Foundation
import TestSupport

/// The table of all call sites of the seam, `Docs/Reliability/FaultSites.md`.
struct FaultSiteTable {
  struct Row: Hashable {
    var site: SeamSite
    var faults: Int
    /// The reason why no fault reaches the site, if none does.
    var reason: String
  }

  static let file = SeamSite.root.appendingPathComponent("Docs/Reliability/FaultSites.md")
  var rows: [Row] = []

  init(_ rows: [Row]) { self.rows = rows }

  /// Reads the kept table.
  init() throws {
    for line in try String(contentsOf: Self.file, encoding: .utf8).split(separator: "\n") where line.hasPrefix("| `Sources/") {
      let cells = line.split(separator: "|", omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `")) }
      guard cells.count >= 6, let call = SeamCall(rawValue: cells[3]), let faults = Int(cells[4]) else { continue }
      rows.append(Row(site: SeamSite(file: cells[1], function: cells[2], call: call), faults: faults, reason: cells[5]))
    }
  }

  /// The text of the page.
  var text: String {
    let reached = rows.count { $0.faults > 0 }
    let faults = rows.reduce(0) { $0 + $1.faults }
    var text = """
      # Fault sites

      Every place in the sources that calls the seam `FileSystem` or a file that it has opened, and the number of times that the fault matrix
      has failed it there. Made by `Scripts/Torture/fault-sites.sh`, never by hand but for the reasons; a test fails when a call site is not here.

      \(reached) of \(rows.count) sites are failed, \(faults) times in all: \(reached * 1_000 / max(rows.count, 1) / 10) %.\(reached < rows.count ? " The others say why not." : "")

      | File | Function | Call | Faults | Reason |
      |---|---|---|---:|---|

      """
    for row in rows {
      text += "| `\(row.site.file)` | `\(row.site.function)` | `\(row.site.call.rawValue)` | \(row.faults) | \(row.reason) |\n"
    }
    return text
  }

  // MARK: Renewing

  /// Makes the table from the traces of a run, with the reasons that are kept.
  static func renewed(from directory: String, program: String) throws -> (table: FaultSiteTable, unknown: [String]) {
    var lines: [(count: Int, call: SeamCall, offsets: [Substring])] = []
    for name in try FileManager.default.contentsOfDirectory(atPath: directory) where name.hasSuffix(".trace") {
      for line in try String(contentsOfFile: directory + "/" + name, encoding: .utf8).split(separator: "\n") {
        let parts = line.split(separator: " ")
        guard parts.count > 2, let count = Int(parts[0]), let call = SeamCall(rawValue: String(parts[1])) else { continue }
        lines.append((count, call, Array(parts[2...])))
      }
    }
    let places = try symbolize(Set(lines.flatMap(\.offsets)), program)
    let sites = try SeamSite.scan()
    var faults = [Int](repeating: 0, count: sites.count)
    var unknown: Set<String> = []
    for line in lines {
      let frames = line.offsets.flatMap { places[$0] ?? [] }
      // The first frame that is a site: defaults of the seam call others of its calls.
      let matches = frames.lazy.map { frame in sites.indices.filter { sites[$0].call == line.call && isAt(frame, sites[$0]) } }
      if let found = matches.first(where: { !$0.isEmpty }) {
        for index in found { faults[index] += line.count }
      } else if let frame = frames.first {
        unknown.insert("\(line.call) \(frame)")
      }
    }
    let kept = (try? FaultSiteTable())?.rows ?? []
    let rows = zip(sites, faults).map { site, count in
      Row(site: site, faults: count, reason: count > 0 ? "" : kept.first { $0.site.description == site.description }?.reason ?? "")
    }
    return (FaultSiteTable(rows), unknown.sorted())
  }

  private static func isAt(_ frame: String, _ site: SeamSite) -> Bool { frame == "\(site.file):\(site.line)" }

  /// Returns the places in the sources of the products that offsets in a program stand for.
  private static func symbolize(_ offsets: Set<Substring>, _ program: String) throws -> [Substring: [String]] {
    let list = offsets.sorted()
    let input = FileManager.default.temporaryDirectory.appendingPathComponent("larder-offsets-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: input) }
    // A return address is behind its call.
    try Data(list.map { "0x\(String((UInt($0, radix: 16) ?? 1) - 1, radix: 16))\n" }.joined().utf8).write(to: input)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["llvm-symbolizer", "--obj=" + program, "--functions=none"]
    process.standardInput = try FileHandle(forReadingFrom: input)
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    var places: [Substring: [String]] = [:]
    for (offset, block) in zip(list, text.components(separatedBy: "\n\n")) {
      places[offset] = block.split(separator: "\n").compactMap { line in
        guard let match = line.firstMatch(of: /(Sources\/(?:Larder|LarderBlobs|LarderSQLite)\/.*\.swift):(\d+)/) else { return nil }
        return "\(match.output.1):\(match.output.2)"
      }
    }
    return places
  }
}
