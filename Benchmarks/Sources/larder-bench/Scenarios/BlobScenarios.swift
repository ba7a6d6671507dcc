import BenchmarkReport
import Foundation
import LarderBlobs

private let size = 100_000

let blobScenarios = [
  Scenario(
    name: "blob-save", group: .cache, title: "Save a blob of 100 kB, durably", operation: "blob", base: "file and fsync",
    notes: ["A blob is hashed, written to a file of its own and noted in an index; the limit writes a file, syncs and renames it."]
  ) { bench in
    let count = bench.operations(20)
    return try await withDirectory { directory in
      let store = try await BlobStore(directory: directory.making("blobs"))
      let files = try directory.making("files")
      var contenders: [Contender] = []
      if bench.wants(.json) {
        contenders.append(
          .timed("Larder blobs", .larder, operations: count) { round in
            for number in 0..<count { try await store.save(bytes(round * count + number), for: "\(number)") }
          })
      }
      if bench.wants(.write) {
        contenders.append(
          .timed("file and fsync", .limit, operations: count) { round in
            for number in 0..<count { try replace(files.appendingPathComponent("\(number)"), with: bytes(round * count + number)) }
          })
      }
      let series = try await bench.race(contenders, rounds: bench.rounds(9))
      try await store.close()
      return series
    }
  },
  Scenario(
    name: "blob-read", group: .cache, title: "Read a blob of 100 kB", operation: "blob", base: "file read",
    notes: ["From its file a blob is read whole and its hash compared; from memory it is handed out."]
  ) { bench in
    let count = bench.operations(100)
    return try await withDirectory { directory in
      let store = try await BlobStore(directory: directory.making("blobs"))
      for number in 0..<count { try await store.save(bytes(number), for: "\(number)") }
      let file = directory.appendingPathComponent("file")
      try replace(file, with: bytes(0))
      var contenders: [Contender] = []
      if bench.wants(.json) {
        contenders += [
          .timed("Larder blobs, from memory", .larder, operations: count) { _ in
            for number in 0..<count { try expect(try await store.blob(for: "\(number)")) }
          },
          .timed("Larder blobs, from files", .larder, operations: count) { _ in
            store.removeFromMemory()
            for number in 0..<count { try expect(try await store.blob(for: "\(number)")) }
          },
        ]
      }
      if bench.wants(.write) {
        contenders.append(
          .timed("file read", .limit, operations: count) { _ in
            for _ in 0..<count where try Data(contentsOf: file).count != size { throw BenchError("expected \(size) bytes") }
          })
      }
      let series = try await bench.race(contenders, rounds: bench.rounds(9))
      try await store.close()
      return series
    }
  },
]

private func bytes(_ number: Int) -> Data {
  var data = Data(repeating: UInt8(truncatingIfNeeded: number), count: size)
  data.replaceSubrange(0..<8, with: withUnsafeBytes(of: number) { Data($0) })
  return data
}

/// Writes a file beside another one, syncs it, and renames it into its place.
private func replace(_ file: URL, with bytes: Data) throws {
  let draft = file.appendingPathExtension("new")
  guard FileManager.default.createFile(atPath: draft.path, contents: nil) else { throw BenchError("expected to create \(draft.path)") }
  let handle = try FileHandle(forWritingTo: draft)
  try handle.write(contentsOf: bytes)
  try handle.synchronize()
  try handle.close()
  guard rename(draft.path, file.path) == 0 else { throw BenchError("expected to rename \(draft.path), found error \(errno)") }
}
