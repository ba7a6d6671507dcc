import Foundation
import Larder

@testable import LarderBlobs

/// A program that uses a blob store, and what lies in its directory before: each of its calls can be failed.
struct BlobFaultScenario: Sendable, CustomStringConvertible {
  enum Step: Sendable {
    case save(String, String)
    case stream(String, [String])
    case abort(String)
    case read(String)
    case remove(String)
    case clear
    case reopen
    /// Leaves the store as a killed process does, and opens it again.
    case kill
    /// Makes a directory in the place of the next file of a key.
    case obstruct(String)
  }

  let name: String
  /// The files that are there before, and the directories.
  var files: [String: Data] = [:]
  var directories: [String] = []
  /// Whether the files are real ones: the simulated disk renames no directories.
  var isReal = false
  let steps: [Step]

  var description: String { name }

  static let keys = ["a", "b", "c"]

  static func all() throws -> [BlobFaultScenario] {
    let id = try BlobStore.id(of: "unknown")
    return [
      BlobFaultScenario(
        name: "a new store",
        steps: [
          .save("a", "1"), .save("a", "2"), .stream("b", ["3", "4"]), .abort("c"), .read("a"), .remove("b"), .reopen, .read("a"),
          .read("b"),
          .save("a", "5"), .kill, .read("a"), .save("c", "6"), .clear, .save("b", "7"),
        ]),
      BlobFaultScenario(
        name: "a damaged index",
        files: [
          BlobFiles.index: Data("{\"format\":\"larder\"".utf8), BlobFiles.index + "-previous": Data("old".utf8),
          BlobFiles.index + "-quarantine-1-64": Data("torn".utf8), id: Data("orphan".utf8), id + "-7-tmp": Data("half".utf8),
        ],
        steps: [.save("a", "1"), .reopen, .read("a")]),
      BlobFaultScenario(
        name: "directories in the way", files: ["notes.txt": Data("mine".utf8)], directories: [BlobFiles.index, id, id + "-7-tmp"],
        isReal: true, steps: [.obstruct("a"), .save("a", "1"), .read("a"), .reopen, .obstruct("b"), .save("b", "2"), .read("b")]),
      BlobFaultScenario(
        name: "a directory in the place of the lock", directories: [BlobFiles.index + "-lock", BlobFiles.index + "-journal"], isReal: true,
        steps: [.save("a", "1"), .reopen, .read("a")]),
    ]
  }
}
