import Foundation
import Testing

@testable import LarderSync

/// A record that a peer or a server must not get into a store, named by its defect.
struct HostileRecord: Sendable, CustomTestStringConvertible {
  /// What becomes of the record at a device.
  enum Fate: Sendable {
    /// Nothing of it is stored, and the rejections name it.
    case setAside
    /// It is stored in a form that every backend reads back.
    case stored
    /// It is stored, and over a limit of the store: it is told, and not read.
    case overALimit

    /// The codes of the rejections that name it.
    var codes: [String] {
      switch self {
      case .setAside: ["malformed"]
      case .stored: []
      case .overALimit: ["tooLarge"]
      }
    }
  }

  let name: String
  var fate = Fate.setAside
  let change: @Sendable (inout SyncRecord) -> Void

  var testDescription: String { name }

  init(_ name: String, _ fate: Fate = .setAside, _ change: @escaping @Sendable (inout SyncRecord) -> Void) {
    (self.name, self.fate, self.change) = (name, fate, change)
  }

  /// Returns the record that another one becomes.
  func of(_ record: SyncRecord) -> SyncRecord {
    var hostile = record
    change(&hostile)
    return hostile
  }

  /// A JSON array in so many others.
  static func nested(_ levels: Int) -> Data {
    Data((String(repeating: "[", count: levels) + String(repeating: "]", count: levels)).utf8)
  }

  static let all: [HostileRecord] = versions + values + names + numbers

  private static let versions = [0, -1, Int.min, 1 << 31, (1 << 53) - 1, 1 << 53, Int.max].map { version in
    HostileRecord("version \(version)") { $0.version = version }
  }

  private static let values: [HostileRecord] = [
    HostileRecord("no bytes") { $0.value = Data() },
    HostileRecord("no JSON") { $0.value = Data("note".utf8) },
    HostileRecord("half of a JSON text") { $0.value = Data(#"{"id":"x""#.utf8) },
    HostileRecord("two JSON texts") { $0.value = Data(#"{"id":"x"}{"id":"y"}"#.utf8) },
    HostileRecord("the end of a record and another one") {
      let text = #"{"id":"x"}},"# + "\n" + #"{"in":"notes","id":"y","rev":1,"version":1,"crc":"00000000","value":{}"#
      $0.value = Data(text.utf8)
    },
    HostileRecord("bytes that are no UTF-8") { $0.value = Data([0x22, 0xC3, 0x28, 0x22]) },
    HostileRecord("an unpaired surrogate") { $0.value = Data(#"{"id":"\ud800"}"#.utf8) },
    HostileRecord("NaN") { $0.value = Data(#"{"count":NaN}"#.utf8) },
    HostileRecord("121 levels") { $0.value = nested(121) },
    HostileRecord("100,000 levels") { $0.value = nested(100_000) },
    HostileRecord("a NUL behind the value") { $0.value = Data(#"{"id":"x"}"#.utf8) + [0] },
    HostileRecord("120 levels", .overALimit) { $0.value = nested(120) },
    HostileRecord("line feeds between the tokens", .stored) { $0.value = Data("{\n \"id\":\"x\",\n \"text\":\"lines\"\n}\n".utf8) },
    HostileRecord("a value of another type", .stored) { $0.value = Data("null".utf8) },
    HostileRecord("a number that no type holds", .stored) { $0.value = Data(#"{"id":"x","count":1e999}"#.utf8) },
    HostileRecord("the largest version", .stored) { $0.version = (1 << 31) - 1 },
  ]

  private static let names: [HostileRecord] = [
    HostileRecord("an empty id") { $0.id = "" },
    HostileRecord("U+0000 in the id") { $0.id = "a\0b" },
    HostileRecord("an id of 1,025 bytes") { $0.id = String(repeating: "i", count: 1_025) },
    HostileRecord("an id of 1 MiB") { $0.id = String(repeating: "é", count: 1 << 19) },
    HostileRecord("an id of 1,024 bytes", .stored) { $0.id = String(repeating: "i", count: 1_024) },
    HostileRecord("an id with a slash, a quote and a line feed", .stored) { $0.id = "notes/\"\n\\" },
    HostileRecord("a writer of 1,025 bytes") { $0.writer = String(repeating: "w", count: 1_025) },
    HostileRecord("U+0000 in the writer") { $0.writer = "\0" },
  ]

  private static let numbers: [HostileRecord] = [-1, Int.min, 1 << 53, Int.max].flatMap { number in
    [
      HostileRecord("revision \(number)") { $0.revision = number }, HostileRecord("stamp \(number)") { $0.stamp = number },
    ]
  }
}
