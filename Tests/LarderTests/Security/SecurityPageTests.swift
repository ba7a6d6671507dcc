import Foundation
import Testing

/// The table of threats names tests that there are, and that run.
@Suite("Security: the page") struct SecurityPageTests {
  @Test func everyTestThatThePageNamesIsRun() throws {
    var root = URL(fileURLWithPath: #filePath)
    for _ in 0..<4 { root.deleteLastPathComponent() }
    let page = try String(contentsOf: root.appendingPathComponent("SECURITY.md"), encoding: .utf8)
    let paths = ["Tests", "Tool/Tests"].flatMap { folder in
      let files = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)
      return (files?.allObjects as? [String] ?? []).filter { $0.hasSuffix("Tests.swift") }.map { "\(folder)/\($0)" }
    }
    let named = page.matches(of: /`(\w+Tests)\.(\w+)`/)
    #expect(named.count > 30)
    for match in named {
      let path = try #require(paths.first { $0.hasSuffix("/\(match.1).swift") }, "a file \(match.1).swift")
      let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
      #expect(Self.isRun(String(match.2), in: text), "\(match.1).\(match.2) is no test, or is not run")
    }
  }

  /// Whether a function in a file is annotated as a test, and neither it nor a suite of the file is disabled or commented out.
  private static func isRun(_ name: String, in text: String) -> Bool {
    let code = text.split(separator: "\n").filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: "\n")
    guard let function = code.range(of: "func \(name)("), let test = code[..<function.lowerBound].range(of: "@Test", options: .backwards)
    else { return false }
    let traits = code[test.upperBound..<function.lowerBound]
    let suites = code.matches(of: /@Suite\([^\n]*/).map { String($0.0) }
    let isDisabled = ([String(traits)] + suites).contains { $0.contains(".disabled") || $0.contains(".enabled(if: false") }
    return !isDisabled && !traits.contains("func ")
  }

  @Test func aFunctionThatIsNoTestDoesNotCount() {
    let rest = "(_ text: String) throws {}\n"
    for run in ["@Test func a", "@Test(arguments: [\n  (1, 2)\n])\n  func a", "@Suite(\"x\") struct S {\n  @Test @MainActor func a"] {
      #expect(Self.isRun("a", in: run + rest), "\(run)")
    }
    for idle in [
      "func a", "@Test func b() {}\n  private func a", "// @Test func a", "@Test(.disabled(\"x\")) func a",
      "@Test(.enabled(if: false)) func a", "@Suite(.disabled()) struct S {\n  @Test func a", "@Test func ab",
    ] {
      #expect(!Self.isRun("a", in: idle + rest), "\(idle)")
    }
  }
}
