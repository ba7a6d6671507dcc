internal import ArgumentParser
internal import Foundation
internal import LarderServer

/// `larder-server token`.
struct Token: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Makes, lists and revokes the tokens of a file.", subcommands: [Add.self, List.self, Revoke.self])

  /// Writes a table so that a server sees the old file or the new one, which only its owner can read.
  static func write(_ table: TokenTable, to path: String) throws {
    let draft = try DraftFile(for: path)
    try draft.write(Data(table.text.utf8), permissions: 0o600)
    try draft.publish(replacing: true)
  }

  static func read(_ path: String) throws -> TokenTable {
    FileManager.default.fileExists(atPath: path) ? try TokenFileAuthorizer.read(path) : TokenTable([])
  }

  /// `larder-server token add`.
  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Makes a token by chance, notes its hash, and prints it once.",
      discussion: "Grants are patterns with rights: user/42:rw, team/*:r.")
    @Option(help: ArgumentHelp("The file of tokens.", valueName: "file")) var tokens: String
    @Argument(help: "The name of the identity.") var identity: String
    @Argument(help: "The grants.") var grants: [String]

    func run() async throws {
      do {
        guard Identity.isName(identity), !identity.contains(where: \.isWhitespace), !identity.hasPrefix("#") else {
          throw ServerError(
            expected: "a name of at most 1,024 bytes, without spaces and control characters", found: "'\(identity)'",
            advice: "name the identity such as 'ann'")
        }
        let token = (0..<4).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
        let digest = TokenTable.digest(ofToken: token)
        var lines = try Token.read(tokens).lines
        for grant in grants {
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
        print(token)
      } catch { throw fail(error) }
    }
  }

  /// `larder-server token list`.
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the tokens: the beginning of the hash, identity, pattern, rights.")
    @Option(help: ArgumentHelp("The file of tokens.", valueName: "file")) var tokens: String

    func run() async throws {
      do {
        for line in try TokenFileAuthorizer.read(tokens).lines {
          let text = line.text
          print(printable("\(text.prefix(12))\(text.dropFirst(64))"))
        }
      } catch { throw fail(error) }
    }
  }

  /// `larder-server token revoke`.
  struct Revoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Revokes tokens; a server that runs notices within a second.")
    @Option(help: ArgumentHelp("The file of tokens.", valueName: "file")) var tokens: String
    @Argument(help: "The beginning of a hash as listed, or the name of an identity.") var which: String

    func run() async throws {
      do {
        let lines = try TokenFileAuthorizer.read(tokens).lines
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
