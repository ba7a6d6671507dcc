import Foundation
import LarderToolKit
import Testing

@Suite struct VerifyTests {
  @Test(arguments: StoreKind.allCases) func `a sound store is sound`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let path = try await workspace.store(kind)
    let run = try await larder("verify", path)
    #expect(run == Run(output: "\(path): sound: 2 records and 1 tombstone at commit 4\n"))
  }

  @Test(arguments: StoreKind.allCases) func `a flipped byte is damage`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let path = try await workspace.store(kind)
    var bytes = try Data(contentsOf: URL(filePath: path))
    let at = try #require(bytes.range(of: Data("Jogashima pier".utf8))).lowerBound
    bytes[at] = UInt8(ascii: "Y")
    try bytes.write(to: URL(filePath: path))
    let run = try await larder("verify", "--json", path)
    #expect(run.code == 1)
    #expect(run.output.contains(#""verdict":"damaged""#))
  }

  @Test func `no file and no argument have codes of their own`() async throws {
    #expect(try await larder("verify", "/nonexistent/spots.json").code == 2)
    #expect(try await larder("verify").code == 64)
  }
}
