import Dispatch
import Foundation
import FuzzTargets
import Testing

/// Each input that is kept, tried again.
@Suite struct CorpusTests {
  private static let corpora = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Corpora").standardizedFileURL

  @Test(arguments: FuzzTarget.all.map(\.name))
  func everyInputOfTheCorpusKeepsThePromises(_ name: String) async throws {
    let target = try #require(FuzzTarget.named(name))
    let folder = Self.corpora.appending(path: name)
    let inputs = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    #expect(!inputs.isEmpty)
    for input in inputs {
      let bytes = try Data(contentsOf: input)
      // On a thread of its own: a target may wait for tasks, which need the threads of the tests.
      let result = await withCheckedContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(returning: Result { try bytes.withUnsafeBytes { try target.run($0) } }) }
      }
      #expect(throws: Never.self, "Fuzzing/Corpora/\(name)/\(input.lastPathComponent)") { try result.get() }
    }
  }

  @Test func everyCorpusBelongsToATarget() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpora.path)
    #expect(Set(folders) == Set(FuzzTarget.all.map(\.name)))
  }

  @Test func everyDictionaryBelongsToATarget() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: Self.corpora.appending(path: "../Dictionaries").path)
    #expect(!names.isEmpty && Set(names).isSubset(of: FuzzTarget.all.map(\.name)))
  }

  @Test func noInputIsLongerThanItsTargetTries() throws {
    for target in FuzzTarget.all {
      let folder = Self.corpora.appending(path: target.name)
      for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
        let bytes = try Data(contentsOf: folder.appending(path: name))
        #expect(bytes.count <= target.maximumLength, "\(target.name)/\(name)")
      }
    }
  }
}
