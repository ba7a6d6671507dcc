import Foundation
import Testing

/// The table of threats names tests that there are.
@Suite("Security: the page") struct SecurityPageTests {
  @Test func everyTestThatThePageNamesIsThere() throws {
    var root = URL(fileURLWithPath: #filePath)
    for _ in 0..<4 { root.deleteLastPathComponent() }
    let page = try String(contentsOf: root.appendingPathComponent("SECURITY.md"), encoding: .utf8)
    let files = FileManager.default.enumerator(atPath: root.appendingPathComponent("Tests").path)
    let paths = (files?.allObjects as? [String] ?? []).filter { $0.hasSuffix("Tests.swift") }
    let named = page.matches(of: /`(\w+Tests)\.(\w+)`/)
    #expect(named.count > 30)
    for match in named {
      let path = try #require(paths.first { $0.hasSuffix("/\(match.1).swift") }, "a file \(match.1).swift")
      let text = try String(contentsOf: root.appendingPathComponent("Tests/" + path), encoding: .utf8)
      #expect(text.contains("func \(match.2)("), "\(match.1).\(match.2)")
    }
  }
}
