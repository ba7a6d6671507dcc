import Foundation
import Larder
import TestSupport

extension FaultWorkload {
  /// Programs that meet what kills, other programs and rare moments leave.
  static let situations: [FaultWorkload] = [
    FaultWorkload(
      name: "what others have left",
      steps: [
        .save(["a"]), .leave(["-tmp", "-journal-tmp", "-copy-0123456789abcdef-tmp"]), .save(["b"]), .leave(["-quarantine-1-64-due"]),
        .fail(.rename, "-quarantine-#-#", EIO), .leave(["-quarantine-2-64-torn"]), .leaveCopy,
        .fail(.rename, "/data/copies/spots.json", EIO), .backup, .replaceMain, .drop, .save(["c"]),
      ]),
    FaultWorkload(
      name: "a new store whose name is not synced",
      before: [.fail(.syncDirectory, "/data/app", EMFILE, skipping: 1)], steps: [.save(["a"]), .drop, .save(["b"])]),
    FaultWorkload(
      name: "a journal that was left behind",
      steps: [
        .save(["a", "b"], size: 200), .fail(.write, "-journal-tmp", ENOSPC), .fail(.remove, "spots.json-journal", EIO), .clear(["-a"]),
        .drop, .save(["c"]), .fail(.write, "spots.json-journal-tmp", EIO), .drop, .save(["d"]),
      ]),
    FaultWorkload(
      name: "a large frame that has no room",
      steps: [.save(["a"]), .fail(.write, "-journal-tmp", ENOSPC), .save(["b"], size: 9_000), .save(["c"])]),
    FaultWorkload(
      name: "a journal that cannot grow ahead",
      tuning: .init(journalChunk: 16 << 10), only: "cut ",
      steps: [
        .fail(.allocate, "spots.json-journal", ENOSPC), .save(["a"], size: 260 << 10), .save(["b"], size: 30 << 10), .save(["c"]),
      ]),
    FaultWorkload(
      name: "a journal that has no room at all",
      steps: [
        .save(["a"], size: 300), .fail(.create, "-journal-tmp", ENOSPC), .fail(.write, "spots.json-journal", ENOSPC), .drop, .save(["b"]),
      ]),
    FaultWorkload(
      name: "a torn tail that has no room",
      steps: [
        .save(["a"], size: 300), .fail(.create, "-journal-tmp", ENOSPC), .fail(.write, "spots.json-journal", ENOSPC), .tear, .save(["b"]),
      ]),
    FaultWorkload(
      name: "a journal whose name is not synced yet",
      steps: [.save(["a", "b"]), .begin, .work, .next, .work, .next, .clear(["-b"]), .save(["c"])]),
    FaultWorkload(
      name: "records in the files",
      options: StoreOptions(residency: .onDisk(cache: .bytes(0))), tuning: .init(journalChunk: 512, smallFile: 0, pagedJournal: 2_048),
      steps: [
        .save(["a", "b", "tokyo"], size: 200), .base, .save(["c", "-a"], durability: .buffered), .flush, .save(["d"]), .drop, .base,
        .checkpoint, .base, .save(["e", "-b", "a"]), .reopen, .save(["f"]), .begin, .save(["g"]), .work, .next, .base, .work, .next, .drop,
        .save(["h", "-e"]), .suspend, .others(["i"]), .resume, .base, .drop, .save(["-i"]), .base,
      ]),
    FaultWorkload(
      name: "an index file that has no room",
      options: StoreOptions(residency: .onDisk(cache: .bytes(0))), tuning: .init(journalChunk: 512, smallFile: 0),
      steps: [
        .save(["a", "b"]), .fail(.write, "-index-tmp", ENOSPC), .checkpoint, .save(["c"]), .fail(.create, "-index-tmp", ENOSPC), .drop,
        .base, .fail(.write, "-index", EIO), .save(["-a"]), .flush, .save(["d"]), .drop, .base, .fail(.rename, "-index", EIO), .checkpoint,
        .save(["e"]), .base, .drop, .begin, .work, .clear(["-b"]), .base,
      ]),
    FaultWorkload(
      name: "an index in the index file",
      options: StoreOptions(residency: .onDisk(cache: .bytes(0))), tuning: .init(journalChunk: 512, smallFile: 0, pagedJournal: 2_048),
      steps: [
        .save(["a", "b", "c"], size: 100), .checkpoint, .index, .save(["d", "-a"]), .drop, .save(["b"]), .flush, .base, .drop,
        .checkpoint, .save(["a", "-d"], durability: .buffered), .base, .begin, .save(["e", "b"]), .work, .next, .work, .save(["-c"]),
        .next, .base, .drop, .index, .save(["f"]), .reopen, .save(["-f", "g"]), .suspend, .resume, .save(["h"]), .base, .suspend,
        .others(["i"]), .resume, .save(["j"]), .base, .index, .begin, .save(["k"]), .clear(["-b"]), .base, .drop,
      ]),
    FaultWorkload(
      name: "an index of records in memory", tuning: .init(journalChunk: 512, smallFile: 0),
      steps: [
        .save(["a", "b"]), .checkpoint, .save(["c", "-a"]), .base, .index, .save(["d"]), .flush, .drop, .base, .save(["e"]), .drop, .base,
        .save(["f"]), .base,
      ]),
    FaultWorkload(
      name: "an index that has no room",
      options: StoreOptions(residency: .onDisk(cache: .bytes(0))), tuning: .init(journalChunk: 512, smallFile: 0),
      steps: [
        .save(["a", "b", "c"]), .checkpoint, .fail(.write, "-index", ENOSPC), .index, .index, .save(["d"]),
        .fail(.write, "-index-tmp", ENOSPC, skipping: 1), .checkpoint, .save(["-a"]), .base, .drop, .index, .fail(.write, "-index", EIO),
        .save(["e"]), .flush, .base, .drop, .base,
      ]),
    FaultWorkload(
      name: "a plain file system", isPlain: true,
      steps: [.save(["a"]), .checkpoint, .save(["b"], size: 700)]),
  ]
}
