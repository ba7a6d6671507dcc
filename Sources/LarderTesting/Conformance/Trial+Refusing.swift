internal import Foundation
internal import Larder

extension Trial {
  /// The result of an open, apart from the records.
  struct Finding: Equatable, CustomStringConvertible {
    let description: String
    let isRefusal: Bool

    init(refusal: RepositoryError.Code) {
      description = "\(refusal)"
      isRefusal = true
    }

    init(_ report: OpenReport) {
      let cut = report.cutTail.map { "\($0.byteCount) bytes cut at \($0.offset)\($0.isAmbiguous ? ", ambiguous" : "")" } ?? "no cut"
      description = "commit \(report.commit), \(cut)"
      isRefusal = false
    }
  }

  /// Opens a backend and abandons it, as a store does that refuses the records; no file may differ afterwards.
  @discardableResult
  func openAndAbandon(_ what: String) throws -> Finding {
    let before = try files()
    let backend = try place.makeBackend()
    let finding: Finding
    do throws(RepositoryError) {
      finding = Finding(try backend.open(.init()) { _ in })
      backend.abandon()
    } catch {
      finding = Finding(refusal: error.code)
    }
    let after = try files()
    for name in Set(before.keys).union(after.keys).sorted() where before[name] != after[name] {
      let how = before[name] == nil ? "makes" : after[name] == nil ? "removes" : "changes"
      throw Violation(seen: "a refused open of \(what) \(how) \(name)")
    }
    return finding
  }

  /// Reads the files of the place, by name.
  func files() throws -> [String: Data] {
    guard let directory = place.file?.deletingLastPathComponent() else { return [:] }
    var files: [String: Data] = [:]
    for file in try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil) {
      files[file.lastPathComponent] = try Data(contentsOf: file)
    }
    return files
  }

  /// Makes the last commit look half written: zeros the last eight bytes that it has changed.
  func tearWhatChanged(since before: [String: Data]) throws {
    guard let directory = place.file?.deletingLastPathComponent() else { return }
    var most = (name: "", changed: 0..<0)
    for (name, new) in try files() {
      guard let old = before[name], old != new else { continue }
      let differing = new.indices.filter { $0 >= old.count || old[$0] != new[$0] }
      guard let first = differing.first, let last = differing.last, last + 1 - first > most.changed.count else { continue }
      most = (name, first..<(last + 1))
    }
    guard !most.name.isEmpty else { return }
    let file = directory.appending(path: most.name, directoryHint: .notDirectory)
    var torn = try Data(contentsOf: file)
    for index in most.changed.suffix(8) { torn[index] = 0 }
    try torn.write(to: file)  // a test file: nobody needs it after a crash
  }
}
