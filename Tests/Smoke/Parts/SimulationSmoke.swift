import Foundation
import Larder
import LarderTesting

enum SimulationSmoke {
  static func run(_ directory: URL) async throws {
    let files = SimulatedFileSystem()
    try files.createDirectory("/a")
    try files.place(Data([1, 2]), at: "/a/b", mode: 0o640)
    try expect(files.contents(of: "/a/b") == Data([1, 2]) && files.mode(of: "/a/b") == 0o640 && files.paths.contains("/a/b"))
    let copy = files.copy()
    try expect(copy.fingerprint == files.fingerprint && !files.isDown && files.operationCount >= 0 && files.readCount >= 0)
    files.fail(FaultPlan(.operation(files.operationCount + 1), errorNumber: 5))
    do {
      _ = try files.create("/a/c")
      throw SmokeFailure(description: "expected a fault")
    } catch is RepositoryError {}
    var plan = FaultPlan(.read(3), code: .full, isPermanent: true, writtenBytes: 2)
    plan.abandonsNames = false
    plan.errorNumber = 6
    try expect(plan.isPermanent && plan.writtenBytes == 2 && plan.errorNumber == 6)
    if case .operation = plan.step { throw SmokeFailure(description: "expected a read") }
    let images = copy.crashImages(.powerLoss, limit: 10, seed: 1)
    try expect(images.startIndex < images.endIndex && images[images.startIndex].kind == .powerLoss && !images[0].summary.isEmpty)
    copy.crash(beforeOperation: nil)

    var explorer = CrashExplorer(seed: 3, kinds: [.processKill], imagesPerPoint: 5)
    explorer.imagesPerPoint = 6
    try expect(explorer.seed == 3 && explorer.kinds == [.processKill])
    let workload: (any FileSystem, (Int) -> Void) throws -> Void = { files, acknowledge in
      let file = try files.create("/x")
      try file.sync()
      acknowledge(1)
      try file.close()
    }
    var result = CrashExplorer.Exploration()
    result += try explorer.explore(workload: workload) { _, _ in }
    try expect(result.points > 1 && result.images > 0 && result.duplicates >= 0)
    do {
      _ = try explorer.explore(workload: workload) { _, _ in throw SmokeFailure(description: "lost") }
      throw SmokeFailure(description: "expected a failure")
    } catch let failure as CrashExplorer.Failure {
      try expect(failure.underlying is SmokeFailure && !failure.summary.isEmpty && !failure.description.isEmpty)
      let point = failure.point
      try expect(point.operation >= 0 && point.kind == .processKill && point.image >= 0 && point.seed == 3 && !point.description.isEmpty)
      let again = try explorer.image(at: point, workload: workload)
      try expect(!again.image.fileSystem.isDown && again.acknowledged.count <= 1)
    }
  }
}
