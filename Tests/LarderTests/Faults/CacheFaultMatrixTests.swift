import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder

/// Each call of a cache that is begun anew because its file is damaged fails, and life goes on.
@Suite("Every call of a cache that heals fails, and life goes on", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct CacheFaultMatrixTests {
  private typealias Cache = CachedRepository<String, Int>
  private static let file = URL(fileURLWithPath: "/data/cache/places.json")

  /// A damaged cache: a main file that is cut short, and what belongs to it.
  private static func damaged() throws -> SimulatedFileSystem {
    let files = SimulatedFileSystem()
    let whole = JSONFileBackend(file: file, fileSystem: files)
    _ = try whole.openAndRecover(StoreOptions()) { _ in }
    try whole.close()
    let bytes = try #require(files.contents(of: file.path))
    try files.place(bytes.prefix(bytes.count / 2), at: file.path)
    for ending in ["-previous", "-quarantine-1-64"] { try files.place(Data("left".utf8), at: file.path + ending) }
    return files
  }

  private static func open(_ files: any FileSystem) async throws(RepositoryError) -> OpenedCacheStorage<String, Int> {
    try await Cache.open(file: file, options: StoreOptions(durability: .durable), fileSystem: files) {
      JSONFileBackend(file: $0, fileSystem: files)
    }
  }

  /// Opens the cache with one call failing, then with none, and has it keep a value through a power cut.
  private static func run(_ start: SimulatedFileSystem, _ point: FaultPoint?, _ fault: Fault?) async throws -> FaultyFileSystem {
    let files = start.copy()
    let faulty = FaultyFileSystem(files)
    if let point, let fault { faulty.fail(point, fault) } else { faulty.noteSites() }
    var opened: OpenedCacheStorage<String, Int>?
    do throws(RepositoryError) {
      opened = try await open(faulty)
    } catch {
      let isTyped = error.code == fault?.code || fault?.effect == .shortRead || error.code == .outcomeUnknown
      #expect(isTyped && faulty.hits > 0, "\(fault?.description ?? "no fault"): \(error)")
    }
    faulty.mend()
    for image in files.crashImages(limit: 2) { try checkDamaged(image.fileSystem, start) }
    if opened == nil { opened = try await open(faulty) }
    let storage = try #require(opened).storage
    let now = Date(timeIntervalSince1970: 1_000_000)
    try await storage.save(CachedEntry(key: "four", content: .value(4), fetchedAt: now, freshUntil: now, usableUntil: now + 3_600))
    #expect(storage.snapshot.count == 1)
    let lost = try await open(files.crashImages(limit: 1)[0].fileSystem)
    #expect(lost.healing == nil && lost.storage.snapshot.count == 1)
    try await storage.close()
    let again = try await open(files.copy())
    #expect(again.healing == nil && again.storage.snapshot.count == 1)
    try checkDamaged(files, start)
    return faulty
  }

  /// Nothing of a damaged cache is deleted: each file has its name, or the one under which it was set aside.
  private static func checkDamaged(_ files: SimulatedFileSystem, _ start: SimulatedFileSystem) throws {
    for path in start.paths where !path.hasSuffix("-lock") {
      let bytes = start.contents(of: path)
      #expect([files.contents(of: path), files.contents(of: path + "-damaged")].contains(bytes), "\(path) is gone")
    }
  }

  @Test func everyCallOfAHealingCacheFailsAndLifeGoesOn() async throws {
    let seed = try #require(Seeds.list(1, for: "everyCallOfAHealingCacheFailsAndLifeGoesOn").first)
    let start = try Self.damaged()
    let calls = try await Self.run(start, nil, nil).calls
    var faults = 0
    for (point, usual) in zip(calls, FaultRotation(seed: seed).faults(of: calls)) {
      for fault in Torture.isOn ? Fault.all(of: point.call) : usual {
        do { faults += try await Self.run(start, point, fault).hits } catch { Issue.record("\(point): \(fault): \(error)") }
      }
    }
    print("figures: faults \(faults) of a cache that heals, at \(calls.count) calls")
    #expect(faults > 50)
    try CallTrace.save("cache-healing")
  }
}
