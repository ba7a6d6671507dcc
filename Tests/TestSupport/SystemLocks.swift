internal import Foundation

extension TemporaryDirectory {
  /// The locks that the system lists for the files of the directory, whoever holds them; none where it lists no locks (Linux does).
  package func locks() throws -> [String] {
    guard FileManager.default.fileExists(atPath: "/proc/locks") else { return [] }
    let manager = FileManager.default
    let numbers = try names.compactMap { name in
      (try manager.attributesOfItem(atPath: pathOfFile(name))[.systemFileNumber] as? NSNumber)?.uint64Value
    }
    // A line ends with the file as DEVICE:INODE, the first byte and the last.
    return try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n").map(String.init).filter { line in
      let words = line.split(separator: " ")
      return words.contains { word in numbers.contains { word.hasSuffix(":\($0)") && word.filter { $0 == ":" }.count == 2 } }
    }
  }
}
