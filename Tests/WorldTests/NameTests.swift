import Foundation
import Larder
import TestSupport
import Testing

/// Names and paths that other layers would read as something else.
@Suite("The world: names and paths of stores", .timeLimit(.minutes(15))) struct NameTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory(inMemory: !Torture.isOn) }

  /// Names that a file can have; the longest leave no room for the names beside them.
  private static let names = [
    "a b", " leading", "trailing ", "caf\u{E9}", "cafe\u{301}", "%41", "100%", "a?b", "?immutable=1", "a#b", "file:x", "new\nline", "tab\t",
    "-", "--",
    "-rf", "...", "..spots", ".hidden", "~", "~root", "$HOME", "`id`", "'", "\"", "\\", "a\\b", ";", "*", "[a]", "|", ":", "\u{202E}txt",
    "\u{200B}",
    "\u{FEFF}bom", "🗾", "日本", "e\u{301}\u{302}\u{303}", "%2F", "%00", "CON", "nul", "a.json-journal", "a-wal", "x-lock", "x-tmp", "x-shm",
    "x-quarantine-1-64", "x-copy-0123456789abcdef-tmp", "\u{7F}", "\u{1}",
  ]

  @Test(arguments: Backing.allCases) func aStoreOfAnyNameKeepsEverythingUnderThatNameAlone(_ backing: Backing) throws {
    let lengths = [200, 241, 242, 243, 244, 254, 255].flatMap { count in
      [String(repeating: "n", count: count), String(repeating: "é", count: count / 2) + (count % 2 == 0 ? "" : "n")]
    }
    let limit = backing == .json ? 242 : 243
    for name in Self.names + lengths {
      try directory.clear()
      let file = URL(fileURLWithPath: directory.path + "/" + name, isDirectory: false)
      guard name.utf8.count <= limit else {
        #expect(backing.answer(file) == .refused(.unsupported), "\(name.utf8.count) bytes")
        #expect(try directory.names == [])
        continue
      }
      let store = try backing.open(file)
      try store.save(1)
      try store.backend.checkpoint()
      try store.save(2)
      try store.backend.close()
      #expect(try entries() == [name], "\(name.debugDescription)")
      for access in backing.accesses {
        #expect(backing.answer(file, access) == .everything(["spots/1", "spots/2"]), "\(name.debugDescription), \(access)")
      }
      #expect(try entries() == [name], "\(name.debugDescription)")
    }
    print("figures: situations \((Self.names.count + lengths.count) * backing.accesses.count) (names of \(backing))")
  }

  /// Returns the names in the directory as their bytes are.
  private func entries() throws -> [String] { try POSIXFileSystem().entries(of: directory.path) ?? [] }

  @Test(arguments: Backing.allCases) func namesThatLookAlikeAreTwoStores(_ backing: Backing) throws {
    #if os(Linux)
      for (one, other) in [("caf\u{E9}", "cafe\u{301}"), ("a", "A"), ("\u{212B}", "\u{C5}")] {
        try directory.clear()
        let files = [one, other].map { URL(fileURLWithPath: directory.path + "/" + $0) }
        let stores = try files.map { try backing.open($0) }
        try stores[0].save(1, in: "one")
        try stores[1].save(1, in: "other")
        for store in stores { try store.backend.close() }
        #expect(backing.answer(files[0]) == .everything(["one/1"]))
        #expect(backing.answer(files[1]) == .everything(["other/1"]))
      }
    #endif
  }

  /// Leftovers of an interrupted run of one store are not removed, and not reported, by a store whose name is the same text in other bytes.
  @Test(arguments: Backing.allCases) func leftoversOfANameThatLooksAlikeStay(_ backing: Backing) throws {
    #if os(Linux)
      let endings = [
        "-tmp", "-journal-tmp", "-previous-tmp", "-copy-0123456789abcdef-tmp", "-quarantine-1-64-tmp", "-quarantine-1-64-due",
        "-quarantine-1-64-torn",
      ]
      for (one, other) in [("caf\u{E9}", "cafe\u{301}"), ("cafe\u{301}", "caf\u{E9}"), ("\u{212B}", "\u{C5}")] {
        try directory.clear()
        // The last is another name altogether: "-" and a mark that combines with it are one character.
        let leftovers = endings.map { one + $0 } + [other + "-quarantine-\u{301}1-2-tmp"]
        for name in leftovers { try Data("left".utf8).write(to: URL(fileURLWithPath: directory.path + "/" + name)) }
        let file = URL(fileURLWithPath: directory.path + "/" + other)
        for _ in 0..<2 {
          let store = try backing.open(file)
          #expect(store.report.isClean || store.report.isNew, "\(store.report)")
          #expect(store.report.removedTemporaryFiles.isEmpty && store.report.cutTail == nil)
          try store.backend.backup(to: URL(fileURLWithPath: directory.path + "/backup"))
          try FileManager.default.removeItem(atPath: directory.path + "/backup")
          try store.backend.close()
        }
        let found = try entries().map { Array($0.utf8) }
        for name in leftovers { #expect(found.contains(Array(name.utf8)), "\(name.debugDescription)") }
      }
    #endif
  }

  /// Other paths to one file, by which it is the same store.
  private func paths(_ backing: Backing) throws -> [(String, URL)] {
    let home = directory.url.appendingPathComponent("home")
    try FileManager.default.createDirectory(at: home.appendingPathComponent("sub"), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(at: directory.url.appendingPathComponent("link"), withDestinationURL: home)
    try FileManager.default.createSymbolicLink(
      atPath: directory.path + "/link2", withDestinationPath: directory.path + "/link/sub/..")
    let name = backing.fileName
    return [
      ("plain", home.appendingPathComponent(name)),
      ("a linked directory", URL(fileURLWithPath: directory.path + "/link/" + name)),
      ("links of links", URL(fileURLWithPath: directory.path + "/link2/" + name)),
      ("..", URL(fileURLWithPath: home.path + "/sub/../" + name)), (".", URL(fileURLWithPath: home.path + "/./" + name)),
      ("//", URL(fileURLWithPath: home.path + "//" + name)),
      ("relative to a base", URL(fileURLWithPath: "home/" + name, relativeTo: directory.url)),
    ]
  }

  @Test(arguments: Backing.allCases) func anotherPathToAStoreIsTheSameStore(_ backing: Backing) throws {
    let paths = try paths(backing)
    var count = 0
    for (one, first) in paths {
      for (other, second) in paths {
        for access in backing.accesses {
          for hasLock in [true, false] where access != .readOnly || hasLock {
            let what = "\(backing), \(access), \(one) and \(other), lock \(hasLock)"
            let store = try backing.open(first)
            let commit = store.report.commit.number + 1
            try store.save(commit)
            let lock = paths[0].1.path + "-lock"
            if !hasLock { try FileManager.default.removeItem(atPath: lock) }
            let all = store.keys.union(["spots/\(commit)"])
            #expect(backing.answer(second, access) == (access == .readOnly ? .everything(all) : .refused(.alreadyOpen)), "\(what)")
            try store.backend.close()
            #expect(backing.answer(second) == .everything(all), "\(what), afterwards")
            count += 1
          }
        }
        if !Torture.isOn, one != "plain" { break }
      }
    }
    print("figures: situations \(count) (paths to one store of \(backing))")
  }
}
