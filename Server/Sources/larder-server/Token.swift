internal import ArgumentParser
internal import Foundation
internal import LarderServer

/// Command `larder-server token`, which edits a token file.
struct Token: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Makes, lists and revokes the tokens of a file.", subcommands: [Add.self, List.self, Revoke.self])

  /// Writes a token file that only its owner can read.
  ///
  /// A running server reads either the old file or the new one.
  static func write(_ table: TokenTable, to path: String) throws {
    let draft = try DraftFile(for: path)
    try draft.write(Data(table.text.utf8), permissions: 0o600)
    try draft.publish(replacing: true)
  }

  static func read(_ path: String) throws -> TokenTable {
    // No file is an empty table, so that `token add` makes the first one.
    FileManager.default.fileExists(atPath: path) ? try TokenFileAuthorizer.read(path) : TokenTable([])
  }

  /// Command `larder-server token add`, which makes a token and prints it once.
  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Makes a token by chance, notes its hash, and prints it once.",
      discussion: "Grants are patterns with rights: user/42:rw, team/*:r.")
    @Option(help: ArgumentHelp("The file of tokens.", valueName: "file")) var tokens: String
    @Argument(help: "The name of the identity.") var identity: String
    @Argument(help: "The grants.") var grants: [String]

    func run() async throws {
      do {
        // Spaces separate the words of a line in the file, and `#` begins a comment.
        guard Identity.isName(identity), !identity.contains(where: \.isWhitespace), !identity.hasPrefix("#") else {
          throw ServerError(
            expected: "a name of at most 1,024 bytes, without spaces and control characters", found: "'\(identity)'",
            advice: "name the identity such as 'ann'")
        }
        // 256 bits from the generator of the system, which cannot be guessed.
        let token = (0..<4).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
        let digest = TokenTable.digest(ofToken: token)
        var lines = try Token.read(tokens).lines
        for grant in grants {
          // The last colon, because the name of a scope may contain others.
          guard let colon = grant.lastIndex(of: ":"), let access = ScopeAccess(grant[grant.index(after: colon)...]),
            colon > grant.startIndex,
            printable(grant) == grant, !grant.contains(where: \.isWhitespace)
          else {
            throw ServerError(
              expected: "PATTERN:r, :w or :rw without spaces and control characters", found: "'\(grant)'",
              advice: "write a grant such as user/42:rw")
          }
          lines.append(TokenTable.Line(digest: digest, identity: identity, grant: ScopeGrant(String(grant[..<colon]), access)))
        }
        try Token.write(TokenTable(lines), to: tokens)
        // The only place where the token appears, since the file has its hash alone.
        print(token)
      } catch { throw fail(error) }
    }
  }

  /// Command `larder-server token list`, which prints the lines of a token file.
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the tokens: the beginning of the hash, identity, pattern, rights.")
    @Option(help: ArgumentHelp("The file of tokens.", valueName: "file")) var tokens: String

    func run() async throws {
      do {
        for line in try TokenFileAuthorizer.read(tokens).lines {
          // The first 12 of 64 digits are enough for `token revoke` to find the token.
          let text = line.text
          print(printable("\(text.prefix(12))\(text.dropFirst(64))"))
        }
      } catch { throw fail(error) }
    }
  }

  /// Command `larder-server token revoke`, which removes tokens from a token file.
  struct Revoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Revokes tokens; a server that runs notices within a second.")
    @Option(help: ArgumentHelp("The file of tokens.", valueName: "file")) var tokens: String
    @Argument(help: "The beginning of a hash as listed, or the name of an identity.") var which: String

    func run() async throws {
      do {
        let lines = try TokenFileAuthorizer.read(tokens).lines
        // A shorter beginning could be that of several hashes.
        let isHash = which.count >= 8 && which.allSatisfy(\.isHexDigit)
        let left = lines.filter { !($0.identity == which || isHash && $0.text.hasPrefix(which)) }
        guard left.count < lines.count else {
          throw ServerError(expected: "a token of '\(which)'", found: "none", advice: "look at 'larder-server token list'")
        }
        try Token.write(TokenTable(left), to: tokens)
        print("\(lines.count - left.count) lines revoked")
      } catch { throw fail(error) }
    }
  }
}
