import Foundation

/// The variables that an expression can name, and the paths to their values in its environment.
///
/// They are the item, and the elements that the closures of `contains(where:)` and the like are about.
struct Scope<Environment>: Sendable {
  /// The variable that is the whole environment, in the scope of an item.
  private let item: PredicateExpressions.Variable<Environment>?
  private let itemID: PredicateExpressions.VariableID?
  /// The variables of any other scope.
  private let others: [any VariableSlot<Environment>]

  /// The variables of the scope; that of an item is made when it is asked for, as most comparisons are analyzed without it.
  private var slots: [any VariableSlot<Environment>] {
    guard let item else { return others }
    return [Slot<Environment, Environment>(variable: item, path: ValuePath(keyPath: \.self, isAll: true))]
  }

  /// Makes the empty scope, in which only constants can be compiled.
  init() { self.init(slots: []) }

  /// Makes the scope of the item itself.
  init(item variable: PredicateExpressions.Variable<Environment>) { (item, itemID, others) = (variable, variable.key, []) }

  private init(slots: [any VariableSlot<Environment>]) { (item, itemID, others) = (nil, nil, slots) }

  /// Whether a variable is the whole environment.
  func isItem(_ variable: PredicateExpressions.Variable<Environment>) -> Bool { itemID == variable.key }

  /// Returns the scope inside a closure that takes one element more.
  func nested<Element>(_ variable: PredicateExpressions.Variable<Element>) -> Scope<Nested<Environment, Element>> {
    let outer = slots.compactMap { $0.moved(into: Element.self) }
    let own = Slot<Nested<Environment, Element>, Element>(variable: variable, path: ValuePath(keyPath: \.element))
    return Scope<Nested<Environment, Element>>(slots: outer + [own])
  }

  /// Returns the path to the value of a variable.
  func path<Value>(to variable: PredicateExpressions.Variable<Value>) throws(RepositoryError) -> ValuePath<Environment, Value> {
    for slot in slots where slot.id == variable.key {
      if let slot = slot as? Slot<Environment, Value> { return slot.path }
    }
    throw RepositoryError(.unsupported, "a predicate names a variable that is not bound")
  }

  /// Binds every variable for Foundation.
  func bind(_ environment: Environment, _ bindings: inout PredicateBindings) {
    for slot in slots { slot.bind(environment, &bindings) }
  }
}

/// An environment and, in it, an element.
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
