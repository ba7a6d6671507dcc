import Foundation
import Larder
import TestSupport

/// A program that uses a JSON store in every way, call by call, so that each of its calls can be failed.
struct FaultWorkload: Sendable, CustomStringConvertible {
  enum Step: Sendable {
    /// Saves keys, or deletes those that start with "-", in one batch.
    case save([String], size: Int = 12, commits: UInt64 = 1, durability: Durability = .durable)
    case flush
    case checkpoint
    /// A checkpoint beside commits: its beginning, its long part, and what follows.
    case begin, work, next
    /// Closes the store, or drops it as a kill does, and opens it again.
    case reopen, drop
    /// Suspends the store, or takes its locks again.
    case suspend, resume
    /// Commits as another process, on a disk without faults, while the store is suspended.
    case others([String])
    /// Drops the store and leaves half a frame behind the journal.
    case tear
    /// Copies the store to a new file and reads the copy.
    case backup
    /// Reads the files beside the writer.
    case readOnly
    /// Reads the records that stay in the files, and an index.
    case base
    /// Builds an index in the index file.
    case index
    /// Deletes on a full disk.
    case clear([String])
    /// Makes the next call of a kind fail, as a part of the program: on the file with this ending, after some that succeed.
    case fail(SeamCall, String, Int32, skipping: Int = 0)
    /// Drops the store, leaves files beside it whose names have these endings, and opens it again.
    case leave([String])
    /// Leaves an interrupted copy where the next one goes.
    case leaveCopy
    /// Puts another file in the place of the main file, with the same bytes, the next time that it is locked.
    case replaceMain
  }

  let name: String
  var options = StoreOptions()
  var tuning = JSONFileBackend.Tuning(journalChunk: 512)
  /// The preparation before the store is first opened.
  var before: [Step] = []
  /// Whether the file system has nothing but what one must have.
  var isPlain = false
  /// The beginning of the only calls that are failed, where the others are those of other workloads.
  var only = ""
  let steps: [Step]

  var description: String { name }

  static let all = usual + situations

  /// Programs that meet nothing unusual but a full disk.
  static let usual: [FaultWorkload] = [
    FaultWorkload(
      name: "commits",
      steps: [
        .save(["a", "b", "tokyo"]), .save(["c", "-a"], size: 700, commits: 2), .save(["d"], durability: .buffered),
        .save(["-b"], durability: .buffered), .flush, .save(["e"], size: 40), .readOnly,
      ]),
    FaultWorkload(
      name: "checkpoints",
      options: StoreOptions(keepsPreviousSnapshot: true),
      steps: [.save(["a", "b"]), .checkpoint, .save(["c", "-a"]), .checkpoint, .save(["d"]), .backup, .save(["e"])]),
    FaultWorkload(
      name: "closing and dropping",
      tuning: .init(journalChunk: 512, smallFile: 0),
      steps: [
        .save(["a", "b"], size: 300), .reopen, .save(["c"]), .reopen, .save(["d"], durability: .buffered), .drop, .save(["e"]), .drop,
        .checkpoint,
      ]),
    FaultWorkload(
      name: "suspending",
      steps: [
        .save(["a"]), .save(["b"], durability: .buffered), .suspend, .resume, .save(["c"]), .begin, .suspend, .resume, .checkpoint,
        .suspend,
        .resume, .save(["d"]), .drop, .save(["e"]), .suspend, .others(["f", "-a"]), .resume, .save(["g"]),
      ]),
    FaultWorkload(name: "a torn tail", steps: [.save(["a"]), .tear, .save(["b"]), .tear, .reopen, .save(["c"])]),
    FaultWorkload(
      name: "a checkpoint beside commits",
      steps: [
        .save(["a", "b"]), .save(["c", "-a"], durability: .buffered), .begin, .save(["d", "b"]), .work,
        .save(["-c"], durability: .buffered),
        .next, .save(["a"], size: 700), .work, .save(["f"], durability: .buffered), .next, .save(["g"]), .work, .next, .save(["-b"]),
      ]),
    FaultWorkload(
      name: "checkpoints beside commits, given up",
      steps: [
        .save(["a"]), .begin, .save(["b"]), .work, .checkpoint, .save(["c"]), .begin, .work, .next, .save(["d"]), .checkpoint, .save(["e"]),
        .begin, .work, .next, .work, .next, .reopen, .save(["f"]), .begin, .drop,
      ]),
    FaultWorkload(
      name: "a full disk that is cleared",
      options: StoreOptions(limits: .init(tombstones: 2)),
      steps: [
        .save(["a", "b", "c"], size: 600), .checkpoint, .save(["d", "e"], size: 600), .clear(["-a", "-b"]), .save(["f"]),
        .fail(.write, "-journal-tmp", ENOSPC), .clear(["-f"]), .save(["g", "-c"]), .fail(.write, "-journal-tmp", ENOSPC), .save(["h"]),
        .save(["i"], size: 900),
      ]),
    FaultWorkload(
      name: "a journal that has no room",
      steps: [
        .save(["a", "-b"], size: 200), .fail(.allocate, "-journal-tmp", ENOSPC), .save(["c"], size: 900), .save(["d"]), .begin,
        .fail(.allocate, "-journal-tmp", ENOSPC), .save(["e"], size: 900), .next, .save(["f"]), .drop, .save(["g"]),
        .fail(.create, "-journal-tmp", ENOSPC), .drop, .save(["h"], size: 800), .fail(.create, "-journal-tmp", ENOSPC), .tear,
      ]),
    FaultWorkload(
      name: "a journal that grows ahead",
      tuning: .init(journalChunk: 16 << 10),
      steps: [
        .save(["a"], size: 260 << 10), .save(["b"], size: 30 << 10), .save(["c"]),
      ]),
  ]
}
