import Foundation
import Larder
import Testing

#if os(Linux)
  // Swift's module of the C library does not have these functions.
  @_silgen_name("setxattr") private func setxattr(
    _ path: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>, _ value: UnsafePointer<CChar>, _ size: Int, _ flags: Int32
  ) -> Int32
  @_silgen_name("getxattr") private func getxattr(
    _ path: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>, _ value: UnsafeMutableRawPointer, _ size: Int
  ) -> Int
  @_silgen_name("removexattr") private func removexattr(_ path: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>) -> Int32

  /// Whether files of a directory can have attributes in the namespace of users: `tmpfs` has them since Linux 6.6 only.
  private let hasAttributes: Bool = {
    guard let directory = try? TemporaryDirectory() else { return false }
    let path = directory.pathOfFile("probe")
    return FileManager.default.createFile(atPath: path, contents: nil) && setxattr(path, "user.larder", "1", 1, 0) == 0
  }()

  /// The exclusion from backups is an extended attribute on Apple platforms, and the class of protection goes the same way.
  @Suite("Attributes that an app sets on the file", .enabled(if: hasAttributes), .timeLimit(.minutes(1))) struct FileAttributeTests {
    private let directory: TemporaryDirectory
    private var main: String { directory.pathOfFile("spots.json") }

    init() throws { directory = try TemporaryDirectory() }

    private func attribute(_ name: String, of path: String) -> String? {
      var value = [UInt8](repeating: 0, count: 200)
      let count = getxattr(path, name, &value, value.count)
      return count < 0 ? nil : String(decoding: value.prefix(count), as: UTF8.self)
    }

    private func set(_ name: String, _ value: String) throws {
      try #require(setxattr(main, name, value, value.utf8.count, 0) == 0)
    }

    private func open() async throws -> LocalRepository<Spot> {
      try await LocalRepository<Spot>(
        jsonFile: directory.file("spots.json"), options: .init(checkpoint: .manual, keepsPreviousSnapshot: true))
    }

    @Test func theySurviveCheckpointsAndReachTheFilesBesideIt() async throws {
      let spots = try await open()
      try await spots.save(Spot("Jogashima"))
      try set("user.excluded", "yes")
      try set("user.empty", "")
      try await spots.checkpoint()
      for name in ["spots.json", "spots.json-journal", "spots.json-previous"] {
        #expect(attribute("user.excluded", of: directory.pathOfFile(name)) == "yes", "\(name)")
        #expect(attribute("user.empty", of: directory.pathOfFile(name))?.isEmpty == true, "\(name)")
      }
      for number in 0..<3 {
        try await spots.save(Spot("spot \(number)"))
        try await spots.checkpoint()
      }
      try await spots.close()
      #expect(attribute("user.excluded", of: main) == "yes")
      let again = try await open()
      #expect(attribute("user.excluded", of: main) == "yes")
      try await again.save(Spot("last"))
      try await again.close()
      #expect(attribute("user.excluded", of: main) == "yes" && attribute("user.empty", of: main)?.isEmpty == true)
    }

    @Test func anAttributeThatIsTakenAwayStaysAway() async throws {
      let spots = try await open()
      try await spots.save(Spot("Jogashima"))
      try set("user.excluded", "yes")
      try await spots.checkpoint()
      try #require(removexattr(main, "user.excluded") == 0)
      try await spots.save(Spot("Punta de Lobos"))
      try await spots.checkpoint()
      #expect(attribute("user.excluded", of: main) == nil)
      try await spots.close()
    }
  }
#endif
