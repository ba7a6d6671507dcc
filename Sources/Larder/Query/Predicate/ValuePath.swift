import Foundation

/// Where a value lies in an environment.
struct Place<Environment, Output>: Sendable {
  let path: any KeyPath<Environment, Output> & Sendable
  /// Whether the value is the environment, and the path `\.self`.
  var isAll = false

  /// The place of a part of the value.
  ///
  /// A path from the whole environment is kept as it was written, so that it is equal to the one that an index declares.
  func appending<Part>(_ next: Place<Output, Part>) -> Place<Environment, Part>? {
    if next.isAll, let same = recast(path, to: (any KeyPath<Environment, Part> & Sendable).self) {
      return Place<Environment, Part>(path: same, isAll: isAll)
    }
    if isAll, let same = recast(next.path, to: (any KeyPath<Environment, Part> & Sendable).self) {
      return Place<Environment, Part>(path: same)
    }
    // The standard library does not say so, but a key path of sendable parts is sendable.
    let appended = (path as KeyPath<Environment, Output>).appending(path: next.path as KeyPath<Output, Part>)
    return recast(appended, to: (any KeyPath<Environment, Part> & Sendable).self).map { Place<Environment, Part>(path: $0) }
  }
}

extension Compiled {
  /// An expression that reads a place.
  init(place: Place<Environment, Output>) {
    let path = place.path
    self.init(place: place) { $0[keyPath: path as KeyPath<Environment, Output>] }
  }
}

/// The same value under a type that only generic code knows to be its own.
///
/// Casts to `Sendable` are not checked at run time: both types must be sendable, as all are that this file and its callers pass.
func recast<Value, Other>(_ value: Value, to type: Other.Type) -> Other? { value as? Other }
