internal import ArgumentParser
internal import Foundation
internal import LarderServer

/// Command `larder-server devices`, which lists, moves and forgets devices.
struct Devices: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists identities and their devices, moves the devices of one to another, or forgets devices.",
    subcommands: [List.self, Move.self, Forget.self])

  /// Returns the error for a selection that no device matches.
  private static func none(_ selection: DeviceSelection) -> ServerError {
    let words = [(" of", selection.identity), (" in", selection.scope), (" named", selection.device)].compactMap { word, name in
      name.map { "\(word) '\($0)'" }
    }
    return ServerError(expected: "devices" + words.joined(), found: "none", advice: "look at 'larder-server devices list'")
  }

  /// Command `larder-server devices list`, which prints identities and their devices.
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Lists the identities: name, devices counted once for each scope, and the records and bytes that count for their quota.",
      discussion:
        "Below each identity, a line with a tab in front for each device and scope: when it has last asked for changes or pushed, how "
        + "far it has read, how many commits it is behind, how many of its records wait to be sent, and the version of its app. A "
        + "running server stores what it sees every 30 seconds.")
    @OptionGroup var store: StoreOptions
    @Option(help: "The identity that the devices belong to; all without it.") var identity: String?
    @Option(help: "The scope; all without it.") var scope: String?
    @Flag(help: "Only devices that have not read the newest commit, or on which records wait.") var behind = false

    func run() async throws {
      try await store.withStore { store in
        // By bytes, since two spellings of one Unicode text are two identities.
        let owners = try await store.deviceOwners().reduce(into: [:]) { $0[Array($1.identity.utf8)] = $1 }
        var devices = try await store.devices(identity: identity, scope: scope)
        // Looked up again without the scope, since an identity without devices in one scope is no mistake.
        if let identity, devices.isEmpty, try await store.devices(identity: identity).isEmpty {
          throw Devices.none(DeviceSelection(identity: identity))
        }
        // An identity without devices to print appears only in a list without filters.
        let isWhole = !behind && scope == nil
        if behind { devices = devices.filter { $0.behind ?? 0 > 0 || $0.pending ?? 0 > 0 } }
        let found = Dictionary(grouping: devices) { Array($0.identity.utf8) }
        let names = Set(found.keys).union(isWhole ? owners.keys.filter { name in identity.map { Array($0.utf8) == name } ?? true } : [])
        for name in names.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
          let owner = owners[name]
          print("\(printable(String(decoding: name, as: UTF8.self)))\t\(owner?.devices ?? 0)\t\(owner?.records ?? 0)\t\(owner?.bytes ?? 0)")
          for device in found[name] ?? [] { print(Self.line(of: device)) }
        }
      }
    }

    /// Returns the line of a device with control characters escaped, since clients choose its names.
    private static func line(of device: SeenDevice) -> String {
      let seen = Date(timeIntervalSince1970: Double(device.seenAt) / 1_000).formatted(.iso8601)
      let read = device.position.map { "read \($0) of \(device.head)\tbehind \(device.behind ?? 0)" } ?? "read ?\tbehind ?"
      let (pending, app) = (device.pending.map(String.init) ?? "?", device.app.map(printable) ?? "?")
      return "\t\(printable(device.scope))\t\(printable(device.device))\tseen \(seen)\t\(read)\tpending \(pending)\tapp \(app)"
    }
  }

  /// Command `larder-server devices move`, which gives the devices of one identity to another one.
  struct Move: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Gives the devices of one identity to another, for tokens under a new name; the server may run meanwhile.")
    @OptionGroup var store: StoreOptions
    @Argument(help: "The name that the devices belong to.") var from: String
    @Argument(help: "The name that they are to belong to.") var to: String

    func run() async throws {
      try await store.withStore { store in
        let count = try await store.moveDevices(from: from, to: to)
        guard count > 0 else { throw Devices.none(DeviceSelection(identity: from)) }
        print("\(count) devices moved")
      }
    }
  }

  /// Command `larder-server devices forget`, which removes devices that have not pushed for some days.
  struct Forget: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Forgets devices that have not pushed for some days; their records stay, and one that comes back goes on under a new name.",
      discussion:
        "The records that a forgotten device was the last to write count for no quota until they are written again. A device that "
        + "only reads is forgotten when it has not asked for changes for as long.")
    @OptionGroup var store: StoreOptions
    @Option(help: "The days since the newest push of a device.") var days: Double
    @Option(help: "The identity that the devices belong to; all without it.") var identity: String?
    @Option(help: "The scope; all without it.") var scope: String?
    @Option(help: "The name of the device; all without it.") var device: String?

    func validate() throws { try Age.check(days) }

    func run() async throws {
      let selection = DeviceSelection(identity: identity, scope: scope, device: device, olderThanDays: days)
      try await store.withStore { store in
        let count = try await store.forgetDevices(selection)
        // Without a filter, a store without old devices is in order.
        if count == 0, identity != nil || scope != nil || device != nil {
          let left = try await store.devices(identity: identity, scope: scope)
          let isThere = left.contains { found in device.map { found.device.utf8.elementsEqual($0.utf8) } ?? true }
          // The selected devices may all be too young, which is no mistake.
          guard isThere else { throw Devices.none(selection) }
        }
        print("\(count) devices forgotten")
      }
    }
  }
}
