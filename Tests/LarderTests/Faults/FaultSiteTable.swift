import Foundation
import TestSupport

/// The table of all call sites of the seam, `Docs/Reliability/FaultSites.md`.
struct FaultSiteTable {
  struct Row: Hashable {
    var site: SeamSite
    /// The number of times that it is failed.
    var faults: Int
    /// The numbers of different faults that it is given once, and for ever.
    var once: Int
    var forEver: Int
    /// The faults that it is not given once, by their names.
    var missing: [String] = []
    /// The reason for that.
    var reason: String

    /// The number of faults that are possible.
    var possible: Int { Fault.all(of: site.call).count }
  }

  static let file = SeamSite.root.appendingPathComponent("Docs/Reliability/FaultSites.md")
  var rows: [Row] = []

  init(_ rows: [Row]) { self.rows = rows }

  /// Reads the kept table.
  init() throws {
    for line in try String(contentsOf: Self.file, encoding: .utf8).split(separator: "\n") where line.hasPrefix("| `Sources/") {
      let cells = line.split(separator: "|", omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `")) }
      guard cells.count >= 9, let call = SeamCall(rawValue: cells[3]), let faults = Int(cells[6]) else { continue }
      let counts = cells[4...5].map { Int($0.prefix { $0.isNumber }) ?? 0 }
      let site = SeamSite(file: cells[1], function: cells[2], call: call)
      rows.append(
        Row(
          site: site, faults: faults, once: counts[0], forEver: counts[1], missing: cells[7].split(separator: " ").map(String.init),
          reason: cells[8]))
    }
  }

  /// The text of the page.
  var text: String {
    let reached = rows.count { $0.faults > 0 }
    let (faults, possible) = (rows.reduce(0) { $0 + $1.faults }, rows.reduce(0) { $0 + $1.possible })
    let (once, forEver) = (rows.reduce(0) { $0 + $1.once }, rows.reduce(0) { $0 + $1.forEver })
    func percent(_ part: Int, _ whole: Int) -> String { "\(part) of \(whole), \(part * 1_000 / max(whole, 1) / 10) %" }
    var text = """
      # Fault sites

      Every place in the sources that calls the seam `FileSystem` or a file that it has opened, and the faults that the matrix of `make test`
      gives it. Made by `Scripts/Torture/fault-sites.sh`, never by hand but for the reasons; a test fails when a call site is not here, or lacks
      a fault without a reason.

      The faults of every call are ENOSPC, EDQUOT, EIO, EINTR, EMFILE, EACCES, EPERM and EROFS; of a read also one that gives half of the bytes
      (`short`), of a write and an allocation also half of it behind ENOSPC and EIO (`/part`). Once: the calls before and after succeed. For
      ever: calls that need the same of the disk fail from then on; `make torture` gives all of these, a plain `make test` those that it has
      room for.

      | | |
      |---|---:|
      | Sites that are failed | \(percent(reached, rows.count)) |
      | Sites and faults, once | \(percent(once, possible)) |
      | Sites and faults, for ever | \(percent(forEver, possible)) |
      | Failed calls in all | \(faults) |

      | File | Function | Call | Once | For ever | Calls | Not met once | Reason |
      |---|---|---|---:|---:|---:|---|---|

      """
    for row in rows {
      text += "| `\(row.site.file)` | `\(row.site.function)` | `\(row.site.call.rawValue)` | \(row.once)/\(row.possible) "
      text += "| \(row.forEver)/\(row.possible) | \(row.faults) | \(row.missing.joined(separator: " ")) | \(row.reason) |\n"
    }
    return text
  }

  // MARK: Renewing

  /// Makes the table from the traces of a run, with the reasons that are kept.
  static func renewed(from directory: String, program: String) throws -> (table: FaultSiteTable, unknown: [String]) {
    var lines: [(count: Int, call: SeamCall, fault: String, kind: CallTrace.Kind, offsets: [Substring])] = []
    for name in try FileManager.default.contentsOfDirectory(atPath: directory) where name.hasSuffix(".trace") {
      for line in try String(contentsOfFile: directory + "/" + name, encoding: .utf8).split(separator: "\n") {
        let parts = line.split(separator: " ")
        guard parts.count > 4, let count = Int(parts[0]), let call = SeamCall(rawValue: String(parts[1])),
          let kind = CallTrace.Kind(rawValue: String(parts[3]))
        else { continue }
        lines.append((count, call, String(parts[2]), kind, Array(parts[4...])))
      }
    }
    let places = try symbolize(Set(lines.flatMap(\.offsets)), program)
    let sites = try SeamSite.scan()
    var met = [(count: Int, once: Set<String>, forEver: Set<String>)](repeating: (0, [], []), count: sites.count)
    var unknown: Set<String> = []
    for line in lines {
      let frames = line.offsets.flatMap { places[$0] ?? [] }
      // The first frame that is a site: defaults of the seam call others of its calls.
      let matches = frames.lazy.map { frame in sites.indices.filter { sites[$0].call == line.call && isAt(frame, sites[$0]) } }
      if let found = matches.first(where: { !$0.isEmpty }) {
        for index in found {
          met[index].count += line.count
          switch line.kind {
          case .once: met[index].once.insert(line.fault)
          case .first: met[index].forEver.insert(line.fault)
          case .later: break
          }
        }
      } else if let frame = frames.first {
        unknown.insert("\(line.call) \(frame)")
      }
    }
    let kept = (try? FaultSiteTable())?.rows ?? []
    let rows = zip(sites, met).map { site, met in
      let names = Fault.all(of: site.call).map(\.name)
      let missing = names.filter { !met.once.contains($0) }
      let reason = missing.isEmpty ? nil : kept.first { $0.site.description == site.description && !$0.reason.isEmpty }?.reason
      return Row(
        site: site, faults: met.count, once: names.count - missing.count, forEver: names.count { met.forEver.contains($0) },
        missing: missing, reason: reason ?? "")
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
