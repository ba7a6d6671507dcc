internal import ArgumentParser
internal import LarderServer

/// `larder-server devices`.
struct Devices: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists the identities that devices belong to, or moves the devices of one to another.", subcommands: [List.self, Move.self])

  /// `larder-server devices list`.
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Lists the identities with the number of their devices, counted once for each scope.")
    @OptionGroup var store: StoreOptions

    func run() async throws {
      try await store.withStore { store in for owner in try await store.deviceOwners() { print("\(owner.identity)\t\(owner.devices)") } }
    }
  }

  /// `larder-server devices move`.
  struct Move: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Gives the devices of one identity to another, for tokens under a new name; the server may run meanwhile.")
    @OptionGroup var store: StoreOptions
    @Argument(help: "The name that the devices belong to.") var from: String
    @Argument(help: "The name that they are to belong to.") var to: String

    func run() async throws {
      try await store.withStore { store in
        let count = try await store.moveDevices(from: from, to: to)
        guard count > 0 else {
          throw ServerError(expected: "devices of '\(from)'", found: "none", advice: "look at 'larder-server devices list'")
        }
        print("\(count) devices moved")
      }
    }
  }
}
