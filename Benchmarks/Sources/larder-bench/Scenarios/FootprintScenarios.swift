import BenchmarkReport
import Foundation

let footprintScenarios = [
  Scenario(
    name: "binary", group: .footprint, title: "Added to an app's stripped executable, release", operation: "executable",
    goals: [Goal("Larder", .atMost(3_000_000))],
    notes: ["Over an executable that uses Foundation and nothing else; the system's libraries, SQLite among them, are not counted."]
  ) { bench in
    try await withDirectory { directory in
      let empty = try App.empty.built(in: directory, bench)
      let contenders = App.all.filter { app in app.engines.contains(where: bench.wants) }.map { app in
        Contender(name: app.name, kind: app.kind, unit: .bytes) { _ in Double(try app.built(in: directory, bench) - empty) }
      }
      return try await bench.race(contenders, rounds: 1, warmUp: 0)
    }
  },
  Scenario(
    name: "build", group: .footprint, title: "Processor time of a clean debug build", operation: "build",
    goals: [Goal("Larder", .atMost(70e6))], notes: ["Of the target alone, with the packages that it needs; downloading is not counted."]
  ) { bench in
    guard bench.wants(.json) else { return [] }
    return try await withDirectory { directory in
      let build = { @Sendable (arguments: [String]) in
        try swift(["--package-path", App.root, "--scratch-path", directory.appendingPathComponent("build").path] + arguments)
      }
      // Resolved before, so that only building is counted.
      try run(
        "swift", ["package", "--package-path", App.root, "--scratch-path", directory.appendingPathComponent("build").path, "resolve"])
      return try await bench.race(
        [
          Contender(name: "Larder", kind: .larder) { _ in
            let before = childrenTime()
            try build(["--target", "Larder"])
            return childrenTime() - before
          },
          Contender(name: "LarderSQLite beside it", kind: .larder) { _ in
            let before = childrenTime()
            try build(["--target", "LarderSQLite"])
            return childrenTime() - before
          },
        ], rounds: 1, warmUp: 0)
    }
  },
]

/// An executable that uses one store as little as an app can.
private struct App: Sendable {
  let name: String
  let kind: Series.Kind
  let engines: [Engine]
  let dependencies: String
  let products: String
  let source: String

  /// The directory of this repository.
  static let root = (0..<5).reduce(URL(fileURLWithPath: #filePath)) { url, _ in url.deletingLastPathComponent() }.path

  private static let note = "struct Note: Codable, Identifiable, Sendable { var id = UUID(); var text = \"\" }\n"
  private static let package = ".package(name: \"larder\", path: \"\(root)\")"
  private static let use = "try await notes.save(Note())\nprint(try await notes.loadAll().count)\n"

  static let empty = App(
    name: "empty", kind: .limit, engines: [], dependencies: "", products: "",
    source:
      "import Foundation\n\(note)print(try JSONEncoder().encode(Note()), try JSONDecoder().decode([Note].self, from: Data(\"[]\".utf8)))\n")

  static let all = [
    App(
      name: "Larder", kind: .larder, engines: [.json], dependencies: package, products: ".product(name: \"Larder\", package: \"larder\")",
      source: "import Foundation\nimport Larder\n\(note)let notes = try await LocalRepository<Note>(filename: \"notes\")\n\(use)"),
    App(
      name: "Larder and LarderSQLite", kind: .larder, engines: [.sqlite], dependencies: package,
      products: ".product(name: \"LarderSQLite\", package: \"larder\"), .product(name: \"Larder\", package: \"larder\")",
      source:
        "import Foundation\nimport Larder\nimport LarderSQLite\n\(note)"
        + "let notes = try await LocalRepository<Note>(sqliteFile: URL(fileURLWithPath: \"notes\"))\n\(use)"),
    App(
      name: "GRDB", kind: .peer, engines: [.grdb], dependencies: ".package(url: \"https://github.com/groue/GRDB.swift\", from: \"7.10.0\")",
      products: ".product(name: \"GRDB\", package: \"GRDB.swift\")",
      source:
        "import Foundation\nimport GRDB\n\(note)extension Note: FetchableRecord, PersistableRecord {}\n"
        + "let pool = try DatabasePool(path: \"notes\")\ntry await pool.write { try Note().insert($0) }\n"
        + "print(try await pool.read { try Note.fetchAll($0).count })\n"),
  ]

  /// Builds the executable and returns its bytes, stripped.
  func built(in directory: URL, _ bench: Bench) throws -> Int {
    bench.progress("building an app with \(name)")
    let package = try directory.making(name.replacingOccurrences(of: " ", with: "-"))
    let sources = try package.making("Sources").making("app")
    let manifest = """
      // swift-tools-version: 6.2
      import PackageDescription
      let package = Package(
        name: "app", platforms: [.macOS(.v15)], dependencies: [\(dependencies)],
        targets: [.executableTarget(name: "app", dependencies: [\(products)])])
      """
    // Files of a moment, in a directory of their own.
    try Data(manifest.utf8).write(to: package.appendingPathComponent("Package.swift"), options: .atomic)
    // The same.
    try Data(source.utf8).write(to: sources.appendingPathComponent("main.swift"), options: .atomic)
    try swift(["--package-path", package.path, "-c", "release", "--product", "app"])
    let executable = package.appendingPathComponent(".build/release/app")
    let stripped = package.appendingPathComponent("stripped")
    try run("strip", ["-o", stripped.path, executable.path])
    guard let size = try FileManager.default.attributesOfItem(atPath: stripped.path)[.size] as? Int else {
      throw BenchError("expected the size of \(stripped.path), found none")
    }
    return size
  }
}

private func swift(_ arguments: [String]) throws { try run("swift", ["build", "-Xswiftc", "-gnone", "-Xcc", "-g0"] + arguments) }

/// Runs a program, whose output goes nowhere unless it fails.
private func run(_ program: String, _ arguments: [String]) throws {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments = [program] + arguments
  let output = Pipe()
  process.standardOutput = output
  process.standardError = output
  try process.run()
  let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  process.waitUntilExit()
  guard process.terminationStatus == 0 else {
    throw BenchError("expected \(program) \(arguments.joined(separator: " ")) to pass, found:\n\(text.suffix(2_000))")
  }
}

/// Returns the processor time of all processes that were started and have ended, in microseconds.
private func childrenTime() -> Double {
  var usage = rusage()
  #if canImport(Darwin)
    getrusage(RUSAGE_CHILDREN, &usage)
  #else
    getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
  #endif
  let seconds = Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
  return seconds * 1e6 + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
}
