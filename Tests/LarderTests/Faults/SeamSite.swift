import Foundation
import TestSupport

/// A place in the sources that calls the seam `FileSystem`.
struct SeamSite: Hashable, Comparable, CustomStringConvertible {
  let file: String
  let function: String
  let call: SeamCall
  /// The number of the line, which the table does not have: it changes with every edit above.
  var line = 0

  var description: String { "\(file) | \(function) | \(call.rawValue)" }

  static func < (left: SeamSite, right: SeamSite) -> Bool {
    (left.file, left.line, left.call.rawValue) < (right.file, right.line, right.call.rawValue)
  }

  /// The root of the repository.
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The names that open files have in the sources: the scan knows them by these.
  static let fileNames = ["file", "copy", "source", "target", "new"]

  /// Finds all sites: calls on `fileSystem`, and on open files.
  static func scan() throws -> [SeamSite] {
    var sites: [SeamSite] = []
    for product in ["Larder", "LarderBlobs", "LarderSQLite"] {
      let folder = root.appendingPathComponent("Sources/" + product)
      let paths = (FileManager.default.enumerator(atPath: folder.path)?.allObjects ?? []).compactMap { $0 as? String }.sorted()
      for path in paths where path.hasSuffix(".swift") && !path.hasPrefix("FileSystem/POSIX") && !path.hasPrefix("FileSystem/Locks") {
        let text = try String(contentsOf: folder.appendingPathComponent(path), encoding: .utf8)
        guard text.contains("fileSystem") || text.contains("OpenFile") else { continue }
        sites += scan(text, "Sources/\(product)/\(path)")
      }
    }
    return sites.sorted()
  }

  /// The text of a line that declares a function, or calls the seam.
  private static let hints =
    ["func ", "init", "var ", "fileSystem.", "try open(", "try write("] + fileNames.flatMap { [$0 + ".", $0 + "?."] }

  /// Finds the sites of one file.
  static func scan(_ text: String, _ file: String) -> [SeamSite] {
    var sites: [SeamSite] = []
    var function = ""
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      // Most lines are neither, which C finds out at once; regular expressions would take minutes of a debug build.
      let whole = String(line)
      guard hints.contains(where: { strstr(whole, $0) != nil }) else { continue }
      let code = whole.prefix(upTo: whole.range(of: "//")?.lowerBound ?? whole.endIndex)
      if let name = code.firstMatch(of: #/^ {0,4}(?:[a-z@()]+ )*(?:func ([A-Za-z]+)|(init|deinit)\b)/#)?.output {
        function = String(name.1 ?? name.2 ?? "")
      } else if let name = code.firstMatch(of: #/^ {0,2}(?:[a-z@()]+ )*var ([A-Za-z]+)[^=]*\{/#)?.output {
        function = String(name.1)
      }
      // The name of a function is no call; what is behind its brace may be one.
      let body = code.contains(#/\bfunc /#) ? code.drop { $0 != "{" } : code
      for call in calls(String(body), file) { sites.append(SeamSite(file: file, function: function, call: call, line: index + 1)) }
    }
    return sites
  }

  /// The files in which such a name stands for a backend, or for a source of bytes that asks its file elsewhere.
  private static let notFiles = ["Store+Copying.swift", "MainFileReader.swift"]

  private static func calls(_ code: String, _ file: String) -> [SeamCall] {
    var calls = code.matches(of: /\bfileSystem\.([a-zA-Z]+)\(/.wordBoundaryKind(.simple)).compactMap {
      SeamCall(rawValue: String($0.output.1))
    }
    if !notFiles.contains((file as NSString).lastPathComponent) || !file.hasPrefix("Sources/Larder/") {
      let ofFile = /\b(?:file|copy|source|target|new)\??\.(status|lock|setOwner|size|mode|setMode|read|write|allocate|cut|sync|close)\(/
        .wordBoundaryKind(.simple)
      calls += code.matches(of: ofFile).compactMap { match in
        switch match.output.1 {
        case "status": .fileStatus
        case "lock": .fileLock
        default: SeamCall(rawValue: String(match.output.1))
        }
      }
    }
    if file.hasSuffix("/FileSystem/FileSystem.swift") {
      calls += code.matches(of: /try (open|write)\(/).compactMap { SeamCall(rawValue: String($0.output.1)) }
    }
    return calls
  }
}
