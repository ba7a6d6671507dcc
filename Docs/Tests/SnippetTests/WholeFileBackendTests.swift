import Foundation
import Larder
import LarderTesting
import Snippets
import Testing

@Suite(.timeLimit(.minutes(1))) nonisolated struct WholeFileBackendTests {
  @Test(arguments: BackendRequirement.all)
  func keepsTheRule(_ requirement: BackendRequirement) throws {
    try requirement.check(.file(named: "store.whole") { file in WholeFileBackend(file: file) })
  }
}
