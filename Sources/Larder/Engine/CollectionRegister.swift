internal import Synchronization

/// The types that a store's collections are read as, with the triggers and coders of tracked collections.
final class CollectionRegister: Sendable {
  private let types = Mutex<[String: ObjectIdentifier]>([:])
  private let tracked = Mutex<[Int: CollectionTrigger]>([:])

  /// Registers the type of a collection if it has none yet. Returns false if it is read as another type.
  func register<Item>(_ type: Item.Type, for name: String) -> Bool {
    types.withLock { types in
      defer { types[name] = types[name] ?? ObjectIdentifier(type) }
      return types[name].map { $0 == ObjectIdentifier(type) } ?? true
    }
  }

  /// Keeps an old name from being opened while its records move to a new one, and afterwards. Returns false if it was opened before.
  func reserve(_ oldName: String) -> Bool {
    types.withLock { types in
      // The type stands for "moved": no repository reads values of it.
      defer { types[oldName] = types[oldName] ?? ObjectIdentifier(Renaming.self) }
      return types[oldName] == nil
    }
  }

  /// Frees a name that ``reserve(_:)`` took, after its records were not moved.
  func release(_ oldName: String) { types.withLock { $0[oldName] = nil } }

  /// True if the records of a name have moved, or are moving.
  func isReserved(_ name: String) -> Bool { types.withLock { $0[name] == ObjectIdentifier(Renaming.self) } }

  /// Triggers and coders of tracked collections, by position.
  var triggers: [Int: CollectionTrigger] { tracked.withLock { $0 } }

  /// Sets the trigger that runs beside each change of a collection.
  func set(_ trigger: CollectionTrigger, of collection: Int) { tracked.withLock { $0[collection] = trigger } }
}
