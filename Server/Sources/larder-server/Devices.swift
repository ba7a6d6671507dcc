internal import ArgumentParser
internal import LarderServer

/// `larder-server devices`.
struct Devices: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists the identities that devices belong to, moves the devices of one to another, or forgets devices.",
    subcommands: [List.self, Move.self, Forget.self])

  /// `larder-server devices list`.
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Lists the identities: name, devices counted once for each scope, and the records and bytes that count for their quota.")
    @OptionGroup var store: StoreOptions

    func run() async throws {
      try await store.withStore { store in
        for owner in try await store.deviceOwners() {
          print("\(owner.identity)\t\(owner.devices)\t\(owner.records)\t\(owner.bytes)")
        }
      }
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

  /// `larder-server devices forget`.
  struct Forget: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Forgets devices that have not pushed for some days; their records stay, and one that comes back goes on under a new name.",
      discussion: "The records that a forgotten device was the last to write count for no quota until they are written again.")
    @OptionGroup var store: StoreOptions
    @Option(help: "The days since the newest push of a device.") var days: Double
    @Option(help: "The identity that the devices belong to; all without it.") var identity: String?
    @Option(help: "The scope; all without it.") var scope: String?
    @Option(help: "The name of the device; all without it.") var device: String?

    func validate() throws { try Age.check(days) }

    func run() async throws {
      let selection = DeviceSelection(identity: identity, scope: scope, device: device, olderThanDays: days)
      try await store.withStore { print("\(try await $0.forgetDevices(selection)) devices forgotten") }
    }
  }
}
