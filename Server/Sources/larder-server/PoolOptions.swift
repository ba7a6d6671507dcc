internal import ArgumentParser
internal import LarderServer

/// Options of `serve` for its connections to PostgreSQL.
struct PoolOptions: ParsableArguments {
  @Option(help: "With PostgreSQL: the connections for pushes.") var writers = PostgreSQLOptions().writers
  @Option(help: "With PostgreSQL: the connections for pages.") var readers = PostgreSQLOptions().readers
  @Option(help: ArgumentHelp("With PostgreSQL: where to listen for commits of other servers, past a pooler; or off.", valueName: "URI"))
  var listen: String?

  func check() throws {
    // Each connection needs a thread here and a process of PostgreSQL.
    guard writers > 0, readers > 0, writers <= 1_000, readers <= 1_000 else {
      throw ValidationError("Expected 1 to 1000 for --writers and --readers, found \(writers) and \(readers).")
    }
  }

  func set(_ options: inout PostgreSQLOptions) {
    (options.writers, options.readers) = (writers, readers)
    options.listening =
      switch listen {
      case nil: .store
      case "off": .off
      // Accepts the same forms as `--store`.
      case let address?: .at(StoreOptions.address(address) ?? address)
      }
  }
}
