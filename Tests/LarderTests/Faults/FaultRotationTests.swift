import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@Suite("The choice of faults for the matrix")
struct FaultRotationTests {
  /// Returns the faults of calls that are all of one site.
  private static func faults(_ rotation: FaultRotation, calls: Int) throws -> [[Fault]] {
    let faulty = FaultyFileSystem(SimulatedFileSystem())
    for _ in 0..<calls { _ = try faulty.open("/a", writable: false) }
    let faults = rotation.faults(of: faulty.calls)
    #expect(faults.count == calls)
    return faults
  }

  @Test func aSiteOfFewCallsMeetsEachFaultOnce() throws {
    for seed in 0..<10 as Range<UInt64> {
      for calls in 1...8 {
        let faults = try Self.faults(FaultRotation(seed: seed), calls: calls).joined()
        #expect(faults.count == 8 && Set(faults) == Set(Fault.all(of: .open)), "\(calls) calls")
      }
    }
  }

  @Test func aSiteOfManyCallsMeetsEachFaultAndThenAThirdOfThoseForEver() throws {
    let usual = try Self.faults(FaultRotation(seed: 3), calls: 40).joined()
    #expect(usual.count == 8 && Set(usual) == Set(Fault.all(of: .open)))
    let permanent = try Self.faults(FaultRotation(seed: 3, isPermanent: true), calls: 12).joined()
    #expect(permanent.count == 11 && permanent.count(where: \.isPermanent) == 3)
    let repeated = try Self.faults(FaultRotation(seed: 3, isRepeating: true), calls: 40)
    #expect(repeated.joined().count == 13 && Set(repeated.joined()) == Set(Fault.all(of: .open)))
    #expect(repeated.allSatisfy { $0.count <= 1 })
  }

  @Test func aSiteThatOthersCoverMeetsAsManyAsItHasCalls() throws {
    #expect(try Self.faults(FaultRotation(seed: 3) { _ in false }, calls: 3).joined().count == 3)
  }

  /// The first caller in the products tells calls of one kind on one file apart.
  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/self/exe"))) func sitesAreToldApart() throws {
    let faulty = FaultyFileSystem(SimulatedFileSystem())
    faulty.noteSites()
    let backend = JSONFileBackend(file: URL(fileURLWithPath: "/data/a.json"), fileSystem: PlainFileSystem(base: faulty))
    _ = try backend.openAndRecover(StoreOptions()) { _ in }
    faulty.mend()
    try backend.close()
    let opened = faulty.calls.filter { $0.call == .open }
    #expect(!faulty.calls.isEmpty && faulty.calls.allSatisfy { $0.site != nil })
    #expect(Set(opened.map(\.site)).count > 1)
  }
}
