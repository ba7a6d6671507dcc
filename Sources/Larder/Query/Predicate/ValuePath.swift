import Foundation

/// The path to a value in an environment.
struct ValuePath<Environment, Output>: Sendable {
  let keyPath: any KeyPath<Environment, Output> & Sendable
  /// Whether the value is the environment, and the path `\.self`.
  var isAll = false

  /// Returns the path to a part of the value.
  ///
  /// A path from the whole environment is kept as it was written, so that it is equal to the one that an index declares.
  func appending<Part>(_ next: ValuePath<Output, Part>) -> ValuePath<Environment, Part>? {
    if next.isAll, let same = recast(keyPath, to: (any KeyPath<Environment, Part> & Sendable).self) {
      return ValuePath<Environment, Part>(keyPath: same, isAll: isAll)
    }
    if isAll, let same = recast(next.keyPath, to: (any KeyPath<Environment, Part> & Sendable).self) {
      return ValuePath<Environment, Part>(keyPath: same)
    }
    // The standard library does not say so, but a key path of sendable parts is sendable.
    let appended = (keyPath as KeyPath<Environment, Output>).appending(path: next.keyPath as KeyPath<Output, Part>)
    return recast(appended, to: (any KeyPath<Environment, Part> & Sendable).self).map { ValuePath<Environment, Part>(keyPath: $0) }
  }
}

extension Compiled {
  /// Makes an expression that reads the value at a path.
  init(path: ValuePath<Environment, Output>) {
    let keyPath = path.keyPath
    self.init(path: path) { $0[keyPath: keyPath as KeyPath<Environment, Output>] }
  }
}

/// Returns the value under a type that only generic code knows to be its own.
///
/// Casts to `Sendable` are not checked at run time: both types must be sendable, as all are that this file and its callers pass.
func recast<Value, Other>(_ value: Value, to type: Other.Type) -> Other? { value as? Other }
