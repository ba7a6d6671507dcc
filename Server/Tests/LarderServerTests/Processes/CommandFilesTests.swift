import Foundation
import LarderWire
import Testing

@testable import LarderServer

/// The files that commands of `larder-server` replace, make and refuse.
@Suite(.timeLimit(.minutes(15))) struct CommandFilesTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: directory.file(name), withDestinationPath: target)
  }

  private func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() }

  /// Expects a command to fail, and to say some words.
  private func expectFailure(_ words: String, _ arguments: [String], _ line: Int = #line) async throws {
    let failure = await #expect(throws: ServerFailure.self, "line \(line)") { try await ServerProcess.run("", arguments) }
    #expect(failure?.said.contains(words) == true, "line \(line): \(failure?.said ?? "")")
  }

  // MARK: Tokens

  /// A rename onto a link would replace the link, and leave every token valid.
  @Test func aTokenIsRevokedThroughALink() async throws {
    try FileManager.default.createDirectory(atPath: directory.file("etc"), withIntermediateDirectories: false)
    try link("first", to: "etc/second")
    try link("etc/second", to: "tokens")
    let (tokens, first) = (directory.file("etc/tokens"), directory.file("first"))
    let token = try await ServerProcess.run("", ["token", "add", "--tokens", first, "ann", "a:rw"]).trimmingCharacters(in: .newlines)
    let authorizer = try TokenFileAuthorizer(path: first, logger: LogLines().logger())
    #expect(try await authorizer.identity(of: token).name == "ann")
    #expect(try await ServerProcess.run("", ["token", "revoke", "--tokens", first, "ann"]) == "1 lines revoked\n")
    #expect(try String(contentsOfFile: tokens, encoding: .utf8) == "")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: first) == "etc/second")
    // The link is the same as before, and the file that it leads to is another one.
    await authorizer.reload()
    await #expect(throws: SyncProblem.unauthorized) { try await authorizer.identity(of: token) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.file("etc")).sorted() == ["second", "tokens"])
  }

  @Test func whatIsNoFileIsNotReplaced() async throws {
    try link("circle", to: "circle")
    #expect(mkfifo(directory.file("pipe"), 0o600) == 0)
    try await expectFailure("links that lead in a circle", ["token", "add", "--tokens", directory.file("circle"), "ann", "a:rw"])
    #expect(throws: ServerError.self) { try DraftFile(for: directory.file("pipe")) }
    try await expectFailure("make its folder", ["token", "add", "--tokens", directory.file("none/tokens"), "ann", "a:rw"])
    #expect(try names() == ["circle", "pipe"])
  }

  /// A terminal obeys the characters behind ESC.
  @Test func controlCharactersAreNeitherTakenNorPrinted() async throws {
    let tokens = directory.file("tokens")
    for arguments in [["an\u{1B}[2Jn", "a:rw"], ["ann", "a\u{1B}b:rw"], ["a\u{202E}b", "a:rw"]] {
      try await expectFailure("control characters", ["token", "add", "--tokens", tokens, arguments[0], arguments[1]])
    }
    for arguments in [["do\u{1B}ctor"], ["doctor", "--st\u{1B}ore"], ["doctor", "x\u{9B}5m"]] {
      let failure = await #expect(throws: ServerFailure.self) { try await ServerProcess.run("", arguments) }
      let controls = failure?.said.unicodeScalars.filter { $0 != "\n" && ($0.value < 0x20 || 0x7F...0x9F ~= $0.value) }
      #expect(controls?.isEmpty == true && failure?.said.contains(#"\u{"#) == true, "\(failure?.said ?? "")")
    }
    let line = TokenTable.Line(digest: TokenTable.digest(ofToken: "t"), identity: "an\u{1B}n", grant: ScopeGrant("a\u{7}", .read))
    try Data(TokenTable([line]).text.utf8).write(to: URL(filePath: tokens))
    let listed = try await ServerProcess.run("", ["token", "list", "--tokens", tokens])
    #expect(listed.contains(#"an\u{1B}n a\u{07} r"#), "\(listed)")
    let store = try await SQLSyncStore.open(sqlite: directory.file("s"), logger: LogLines().logger())
    _ = try await store.push(onePush(), to: "a\u{1B}b", by: "ann")
    await store.close()
    #expect(try await ServerProcess.run("sqlite:\(directory.file("s"))", ["scopes"]).hasPrefix(#"a\u{1B}b"#))
  }

  // MARK: Databases

  @Test func aFileOf0BytesIsNoDatabase() async throws {
    let empty = directory.file("empty")
    try Data().write(to: URL(filePath: empty))
    let words = "expected a database of larder-server at \(empty), found a file of 0 bytes: restore a backup"
    try await expectFailure(words, ["restore", empty, "--store", "sqlite:\(directory.file("new"))"])
    for command in [["doctor"], ["scopes"], ["serve", "--insecure-no-auth", "--port", "0"], ["backup", directory.file("copy")]] {
      try await expectFailure(words, command + ["--store", "sqlite:\(empty)"])
    }
    #expect(try Data(contentsOf: URL(filePath: empty)).isEmpty)
    #expect(try names() == ["empty"])
  }

  /// SQLite would remove the log beside a new database, and the commits in it.
  @Test func aLogWithoutItsFileIsNoNewDatabase() async throws {
    try Data("a log".utf8).write(to: URL(filePath: directory.file("s-wal")))
    try await expectFailure(
      "found only its log", ["serve", "--insecure-no-auth", "--port", "0", "--store", "sqlite:\(directory.file("s"))"])
    #expect(try names() == ["s-wal"])
  }

  @Test func severalProcessesMayMakeTheFileAtOnce() async throws {
    for round in 0..<2 {
      let store = "sqlite:\(directory.file("s\(round)"))"
      let servers = try await withThrowingTaskGroup(of: ServerProcess.self) { group in
        for _ in 0..<3 { group.addTask { try await ServerProcess.start(store) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      for server in servers { await server.end() }
    }
  }

  /// Many rounds, because the other connections are at another step of their work in each.
  @Test func severalConnectionsMayMakeTheFileAtOnce() throws {
    let failures = LogLines()
    for round in 0..<40 {
      let path = directory.file("s\(round)")
      DispatchQueue.concurrentPerform(iterations: 4) { _ in
        do throws(StoreError) { _ = try SQLiteDatabase.open(path) } catch { failures.add("round \(round): \(error)") }
      }
    }
    #expect(failures.text.isEmpty)
    #expect(try names().allSatisfy { !$0.hasSuffix(".draft") })
  }

  /// A server may have been started while a store was restored to its file.
  @Test func aDraftReplacesNothingThatCameMeanwhile() throws {
    let target = directory.file("target")
    let draft = try DraftFile(for: target)
    try draft.write(Data("new".utf8), permissions: 0o600)
    try Data("old".utf8).write(to: URL(filePath: target))
    #expect(throws: ServerError.self) { try draft.publish(replacing: false) }
    #expect(try Data(contentsOf: URL(filePath: target)) == Data("old".utf8))
    let next = try DraftFile(for: target)
    try next.write(Data("new".utf8), permissions: 0o600)
    try next.publish(replacing: true)
    #expect(try Data(contentsOf: URL(filePath: target)) == Data("new".utf8))
    #expect(try names() == ["target"])
  }

  /// A restored store is a file that is renamed: what stays in its log is lost, the new history before all.
  @Test func aStoreThatIsClosedLeavesNoLog() async throws {
    let file = directory.file("s")
    for seq in 1...40 {
      let store = try await SQLSyncStore.open(sqlite: file, logger: LogLines().logger())
      _ = try await store.push(onePush(seq: seq, id: "\(seq)"), to: "a", by: "ann")
      try await withThrowingTaskGroup { group in
        for _ in 0..<16 { group.addTask { _ = try await store.deviceOwners() } }
        try await group.waitForAll()
      }
      await store.close()
      #expect(try names() == ["s"])
    }
  }

  @Test func aBackupIsWholeOrNotThere() async throws {
    let (source, copy) = (directory.file("s"), directory.file("copy"))
    let store = try await SQLSyncStore.open(sqlite: source, logger: LogLines().logger())
    _ = try await store.push(onePush(value: "\"\(String(repeating: "x", count: 1 << 20))\""), to: "a", by: "ann")
    await store.close()
    // A file may have 200 blocks of 512 bytes, as if the disk had no room for more.
    let output = try LinePipe()
    let limited = try ChildProcess(
      "/bin/sh",
      ["-c", "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\"", BuiltPrograms.larderServer, "backup", copy, "--store", "sqlite:\(source)"],
      output: output.input, errors: output.input)
    close(output.input)
    let said = await output.text()
    #expect(await limited.end() == 1)
    #expect(said.contains("the disk"), "\(said)")
    let afterFailure = try names()
    #expect(afterFailure == ["s"], "\(afterFailure)")
    try await expectFailure("make its folder", ["backup", directory.file("none/copy"), "--store", "sqlite:\(source)"])
    // A restore that cannot end leaves nothing, too, and one that can makes the store.
    #expect(try await ServerProcess.run("sqlite:\(source)", ["backup", copy]) == "")
    try await expectFailure("expected no file at \(copy)", ["backup", copy, "--store", "sqlite:\(source)"])
    try link("target", to: "new")
    #expect(try await ServerProcess.run("sqlite:\(directory.file("target"))", ["restore", copy]).hasPrefix("restored"))
    let afterRestoring = try names()
    #expect(afterRestoring == ["copy", "new", "s", "target"], "\(afterRestoring)")
    #expect(try await ServerProcess.run("sqlite:\(directory.file("target"))", ["doctor"]).hasPrefix("1 scopes, 1 records"))
  }
}
