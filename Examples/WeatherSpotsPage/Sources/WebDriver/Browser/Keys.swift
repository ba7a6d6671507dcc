/// Keys that are pressed together.
struct Keys: Sendable {
  private let held: [String]
  private let key: String

  init(_ key: String, holding held: [String] = []) { (self.key, self.held) = (key, held) }

  // The characters by which WebDriver calls the keys.
  static let tab = Keys("\u{E004}")
  static let shiftTab = tab.holding(.shift)
  static let enter = Keys("\u{E007}")
  static let escape = Keys("\u{E00C}")
  static let space = Keys(" ")
  static let backspace = Keys("\u{E003}")
  static let delete = Keys("\u{E017}")
  static let pageUp = Keys("\u{E00E}")
  static let pageDown = Keys("\u{E00F}")
  static let end = Keys("\u{E010}")
  static let home = Keys("\u{E011}")
  static let left = Keys("\u{E012}")
  static let up = Keys("\u{E013}")
  static let right = Keys("\u{E014}")
  static let down = Keys("\u{E015}")

  /// A key that changes what others mean.
  enum Modifier: String, Sendable {
    case shift = "\u{E008}"
    case control = "\u{E009}"
    case alternate = "\u{E00A}"
    case command = "\u{E03D}"
  }

  /// Returns the same with one more key held.
  func holding(_ modifier: Modifier) -> Keys { Keys(key, holding: held + [modifier.rawValue]) }

  /// The steps of WebDriver's virtual keyboard.
  var actions: [JSON] {
    let all = held + [key]
    return all.map { ["type": "keyDown", "value": .string($0)] } + all.reversed().map { ["type": "keyUp", "value": .string($0)] }
  }
}

extension Browser {
  /// Presses keys one after the other, wherever the focus is.
  func press(_ keys: Keys...) async throws {
    _ = try await post(
      "actions", ["actions": [["type": "key", "id": "keyboard", "actions": .array(keys.flatMap(\.actions))]]])
  }

  /// Types text, wherever the focus is.
  func type(_ text: String) async throws {
    let steps = text.flatMap { Keys(String($0)).actions }
    _ = try await post("actions", ["actions": [["type": "key", "id": "keyboard", "actions": .array(steps)]]])
  }
}
