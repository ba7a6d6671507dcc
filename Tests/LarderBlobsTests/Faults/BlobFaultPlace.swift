import Foundation
import Larder
import LarderTesting
import TestSupport

@testable import LarderBlobs

/// The directory of a blob store in a trial: simulated, so that the power can be cut, or a real one.
struct BlobFaultPlace {
  private let simulated: SimulatedFileSystem?
  private let real: TemporaryDirectory?
  let faulty: FaultyFileSystem

  private init(_ simulated: SimulatedFileSystem) {
    (self.simulated, real) = (simulated, nil)
    faulty = FaultyFileSystem(simulated)
  }

  private init(_ real: TemporaryDirectory) {
    (simulated, self.real) = (nil, real)
    faulty = FaultyFileSystem(POSIXFileSystem())
  }

  init(_ scenario: BlobFaultScenario) throws {
    if scenario.isReal {
      self.init(try Self.makeReal())
    } else {
      let files = SimulatedFileSystem()
      if !scenario.files.isEmpty { try files.createDirectory(BlobShelf.directory.path) }
      self.init(files)
    }
    for (name, bytes) in scenario.files {
      if let simulated { try simulated.place(bytes, at: path(name)) } else { try bytes.write(to: URL(fileURLWithPath: path(name))) }
    }
    for name in scenario.directories { try makeDirectory(name) }
  }

  /// Makes a directory whose name is the same in every run, so that its calls are found again.
  private static func makeReal() throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory(inMemory: true)
    try FileManager.default.createDirectory(at: directory.file("blobs"), withIntermediateDirectories: false)
    return directory
  }

  private var directory: URL { real?.url.appendingPathComponent("blobs") ?? BlobShelf.directory }

  private func path(_ name: String) -> String { directory.path + "/" + name }

  func makeDirectory(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: path(name), withIntermediateDirectories: true)
    try Data("mine".utf8).write(to: URL(fileURLWithPath: path(name) + "/notes"))
  }

  /// Opens the store, and reads everything in it.
  func open(through fileSystem: FaultyFileSystem) throws -> (BlobStore, BlobFaultTrial.State) {
    let directory = directory
    let store = try blocking {
      try await BlobStore(directory: directory, limits: .init(), fileSystem: fileSystem, tuning: .init(checkpoint: .manual)) { _ in }
    }
    // What is there shows when a step reads it; here the index says what there is, and a healthy file system what that is.
    let keys = store.persistedKeys
    var found: BlobFaultTrial.State = [:]
    for key in keys {
      let path = try store.index.snapshot.find(by: BlobStore.id(of: key)).map { store.files.path(BlobFiles.name($0)) } ?? ""
      found[key] = bytes(at: path).map { String(decoding: $0, as: UTF8.self) } ?? "gone"
    }
    return (store, found)
  }

  private func bytes(at path: String) -> Data? { simulated?.contents(of: path) ?? FileManager.default.contents(atPath: path) }

  /// Returns the files that a kill leaves now.
  func killed() throws -> BlobFaultPlace {
    if let simulated { return BlobFaultPlace(simulated.copy()) }
    let copy = try Self.makeReal()
    for name in try FileManager.default.contentsOfDirectory(atPath: directory.path) where !name.hasSuffix(".json-lock") {
      try FileManager.default.copyItem(atPath: path(name), toPath: copy.pathOfFile("blobs/" + name))
    }
    return BlobFaultPlace(copy)
  }

  /// Returns the files that a kill leaves now, and those that some power cuts may leave.
  func images(seed: UInt64) throws -> [(String, BlobFaultPlace)] {
    var images = [("killed", try killed())]
    if let simulated {
      for image in simulated.crashImages(limit: Torture.isOn ? 6 : 2, seed: seed) { images.append((image.summary, Self(image.fileSystem))) }
    }
    return images
  }
}
