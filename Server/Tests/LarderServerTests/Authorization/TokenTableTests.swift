import Testing

@testable import LarderServer

/// Lines of a token file, which an administrator may have edited.
@Suite struct TokenTableTests {
  private func line(_ token: String, _ identity: String, _ pattern: String) -> String {
    TokenTable.Line(digest: TokenTable.digest(ofToken: token), identity: identity, grant: ScopeGrant(pattern, .write)).text
  }

  @Test func aTokenHasSeveralGrantsAndOneIdentity() throws {
    let lines = [line("t", "ann", "user/1"), line("u", "bob", "user/2")]
    let sound = try TokenTable((lines + [line("t", "ann", "user/3")]).joined(separator: "\n"))
    try sound.checkIdentities()
    #expect(sound.lines.count == 3)
    // As before, such a file can be read, so that the token can be revoked.
    let shared = try TokenTable((lines + [line("t", "bob", "user/3")]).joined(separator: "\n"))
    let error = #expect(throws: ServerError.self) { try shared.checkIdentities() }
    #expect(error?.found == "two for \(shared.lines[2].text.prefix(12))")
  }

  @Test func lineBreaksOfWindowsAreLineBreaks() throws {
    let text = ["# tokens", line("t", "ann", "user/1"), "", line("u", "bob", "user/2")].joined(separator: "\r\n") + "\r\n"
    #expect(try TokenTable(text).lines.map(\.identity) == ["ann", "bob"])
  }
}
