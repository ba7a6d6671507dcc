import Foundation

/// The variables that an expression can name, with the paths to their values in its environment.
///
/// They are the item, and the elements that closures such as that of `contains(where:)` take.
struct Scope<Environment>: Sendable {
  /// Variable that is the whole environment, in the scope of an item.
  private let item: PredicateExpressions.Variable<Environment>?
  private let itemID: PredicateExpressions.VariableID?
  /// Variables of a scope inside a closure, or none in the scope of an item.
  private let others: [any VariableSlot<Environment>]

  /// Variables of the scope.
  ///
  /// An item's slot is created at each access, because most comparisons are analyzed without it.
  private var slots: [any VariableSlot<Environment>] {
    // `\.self` marks the whole environment, so that a path from it stays the key path that an index declares.
    guard let item else { return others }
    return [Slot<Environment, Environment>(variable: item, path: ValuePath(keyPath: \.self, isAll: true))]
  }

  /// Creates the empty scope, in which only constants can be compiled.
  init() { self.init(slots: []) }

  /// Creates the scope of the item.
  init(item variable: PredicateExpressions.Variable<Environment>) { (item, itemID, others) = (variable, variable.key, []) }

  private init(slots: [any VariableSlot<Environment>]) { (item, itemID, others) = (nil, nil, slots) }

  /// Returns true if a variable is the whole environment.
  func isItem(_ variable: PredicateExpressions.Variable<Environment>) -> Bool { itemID == variable.key }

  /// Returns the scope inside a closure that takes an element.
  func nested<Element>(_ variable: PredicateExpressions.Variable<Element>) -> Scope<Nested<Environment, Element>> {
    // The closure may name outer variables, too. Their paths now lead through the outer environment.
    let outer = slots.compactMap { $0.moved(into: Element.self) }
    let own = Slot<Nested<Environment, Element>, Element>(variable: variable, path: ValuePath(keyPath: \.element))
    return Scope<Nested<Environment, Element>>(slots: outer + [own])
  }

  /// Returns the path to the value of a variable.
  ///
  /// - Throws: `.unsupported` for a variable that is not in the scope.
  func path<Value>(to variable: PredicateExpressions.Variable<Value>) throws(RepositoryError) -> ValuePath<Environment, Value> {
    for slot in slots where slot.id == variable.key {
      // The identifier determines the type, but only a cast shows it to the compiler.
      if let slot = slot as? Slot<Environment, Value> { return slot.path }
    }
    throw RepositoryError(.unsupported, "a predicate names a variable that is not bound")
  }

  /// Binds every variable for an evaluation by Foundation.
  func bind(_ environment: Environment, _ bindings: inout PredicateBindings) {
    for slot in slots { slot.bind(environment, &bindings) }
  }
}

/// The environment inside a closure: the outer environment and the closure's element.
struct Nested<Outer, Element> {
  let outer: Outer
  let element: Element
}

private protocol VariableSlot<Environment>: Sendable {
  associatedtype Environment
  var id: PredicateExpressions.VariableID { get }
  func moved<Element>(into: Element.Type) -> (any VariableSlot<Nested<Environment, Element>>)?
  func bind(_ environment: Environment, _ bindings: inout PredicateBindings)
}

private struct Slot<Environment, Value>: VariableSlot {
  let variable: PredicateExpressions.Variable<Value>
  let path: ValuePath<Environment, Value>

  var id: PredicateExpressions.VariableID { variable.key }

  func moved<Element>(into: Element.Type) -> (any VariableSlot<Nested<Environment, Element>>)? {
    let outer = ValuePath<Nested<Environment, Element>, Environment>(keyPath: \.outer)
    return outer.appending(path).map { Slot<Nested<Environment, Element>, Value>(variable: variable, path: $0) }
  }

  func bind(_ environment: Environment, _ bindings: inout PredicateBindings) {
    bindings[variable] = environment[keyPath: path.keyPath as KeyPath<Environment, Value>]
  }
}

/// A path to a value in an environment.
struct ValuePath<Environment, Output>: Sendable {
  let keyPath: any KeyPath<Environment, Output> & Sendable
  /// True if the value is the environment itself, and the path `\.self`.
  var isAll = false

  /// Returns the path to a part of the value.
  ///
  /// A path from the whole environment is kept as it was written, so that it equals the path that an index declares.
  func appending<Part>(_ next: ValuePath<Output, Part>) -> ValuePath<Environment, Part>? {
    if next.isAll, let same = recast(keyPath, to: (any KeyPath<Environment, Part> & Sendable).self) {
      return ValuePath<Environment, Part>(keyPath: same, isAll: isAll)
    }
    if isAll, let same = recast(next.keyPath, to: (any KeyPath<Environment, Part> & Sendable).self) {
      return ValuePath<Environment, Part>(keyPath: same)
    }
    // The standard library does not declare it, but a key path made of sendable parts is sendable.
    let appended = (keyPath as KeyPath<Environment, Output>).appending(path: next.keyPath as KeyPath<Output, Part>)
    return recast(appended, to: (any KeyPath<Environment, Part> & Sendable).self).map { ValuePath<Environment, Part>(keyPath: $0) }
  }
}

extension Compiled {
  /// Creates an expression that reads the value at a path.
  init(path: ValuePath<Environment, Output>) {
    let keyPath = path.keyPath
    self.init(path: path) { $0[keyPath: keyPath as KeyPath<Environment, Output>] }
  }
}

/// Casts a value to a type that generic code cannot name statically, or returns `nil` if it has another type.
///
/// Casts to `Sendable` are not checked at run time, so both types must be sendable, as all types passed by this file and its callers are.
func recast<Value, Other>(_ value: Value, to type: Other.Type) -> Other? { value as? Other }
