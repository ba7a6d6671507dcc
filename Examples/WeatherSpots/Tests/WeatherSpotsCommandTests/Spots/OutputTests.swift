import Foundation
import Testing

/// What `--output` writes, and what it leaves alone.
@Suite(.timeLimit(.minutes(15))) struct OutputTests {
  private let workspace = Workspace()

  private func export(_ store: String, to output: String) async throws -> Run {
    try await weatherSpots(["export", "--format", "csv", "--output", output, "--store", store])
  }

  private func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: workspace.path(name), withDestinationPath: target)
  }

  @Test(arguments: SpotCommandsTests.stores) func theFilesOfAStoreAreNeverReplaced(_ name: String) async throws {
    let (store, other) = (try await workspace.store(name), try await workspace.store("other-\(name)"))
    try link("link", to: name)
    try FileManager.default.linkItem(atPath: store, toPath: workspace.path("second-name"))
    try link("folder", to: ".")
    let before = try Data(contentsOf: URL(filePath: store))
    let names = try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path).sorted()
    for output in [
      store, "\(store)-journal", "\(store)-wal", "\(store)-shm", "\(store)-lock", workspace.path("link"), workspace.path("second-name"),
      workspace.path("folder/\(name)-journal"), other, "\(other)-journal",
    ] {
      #expect(try await export(store, to: output) == Run.failure("\(output) is of a store, which would be lost; name another file", 73))
    }
    #expect(try Data(contentsOf: URL(filePath: store)) == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path).sorted() == names)
    #expect(try await weatherSpots(["list", "--store", other]).output.contains("Brest"))
    // Nothing is asked of the network first.
    let photo = ["photo", "Brest", "http://127.0.0.1:1/x.png", "--output", store, "--store", store]
    #expect(try await weatherSpots(photo).code == 73)
  }

  @Test func aLinkIsFollowedAndStays() async throws {
    let store = try await workspace.store("spots.json")
    try FileManager.default.createDirectory(atPath: workspace.path("folder"), withIntermediateDirectories: false)
    for (name, target) in [("one", "folder/file.csv"), ("folder/two", "second.csv"), ("three", "one")] { try link(name, to: target) }
    for name in ["one", "folder/two", "three"] { #expect(try await export(store, to: workspace.path(name)).code == 0) }
    #expect(try workspace.text("folder/file.csv").contains("Brest") && workspace.text("folder/second.csv").contains("Brest"))
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: workspace.path("one")) == "folder/file.csv")
    try link("circle", to: "circle")
    let circle = workspace.path("circle")
    #expect(try await export(store, to: circle) == Run.failure("\(circle) cannot be written: its links lead in a circle", 73))
  }

  @Test func theConfigurationIsWrittenThroughALink() async throws {
    try FileManager.default.createDirectory(atPath: workspace.path("weather-spots"), withIntermediateDirectories: false)
    _ = try workspace.file("dotfile", "# mine\n")
    try link("weather-spots/config", to: "../dotfile")
    let environment = ["XDG_CONFIG_HOME": workspace.directory.path]
    #expect(try await weatherSpots(["config", "set", "units", "imperial"], environment: environment).code == 0)
    #expect(try workspace.text("dotfile") == "# mine\nunits = imperial\n")
  }

  @Test func aPipeGetsTheBytesAndStays() async throws {
    let store = try await workspace.store("spots.json")
    let pipe = workspace.path("pipe")
    #expect(mkfifo(pipe, 0o600) == 0)
    // Open for both, so that neither end waits for the other.
    let descriptor = open(pipe, O_RDWR | O_CLOEXEC)
    try #require(descriptor >= 0)
    let reader = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    #expect(try await export(store, to: pipe) == Run(output: "Exported 1 spots to \(pipe).\n"))
    #expect(String(decoding: reader.availableData, as: UTF8.self).contains("Brest,48.39,-4.49"))
    var status = stat()
    #expect(lstat(pipe, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
    // The output is a pipe here, which has no path.
    let run = try await export(store, to: "/dev/stdout")
    #expect(run.code == 0 && run.output.contains("Brest,48.39,-4.49"), "\(run)")
  }

  #if os(Linux)
    /// As standard output is, where a shell has opened a file with `>>`.
    @Test func aFileThatADescriptorLeadsToIsAppendedTo() async throws {
      let store = try await workspace.store("spots.json")
      _ = try workspace.file("all.csv", "earlier\n")
      let handle = try FileHandle(forUpdating: URL(filePath: workspace.path("all.csv")))
      #expect(try await export(store, to: "/proc/\(getpid())/fd/\(handle.fileDescriptor)").code == 0)
      let text = try workspace.text("all.csv")
      #expect(text.hasPrefix("earlier\n") && text.contains("Brest,48.39,-4.49"))
      try handle.close()
    }
  #endif
}
