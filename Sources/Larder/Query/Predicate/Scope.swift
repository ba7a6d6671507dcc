import Foundation

/// The variables that an expression may name, each with the key path to its value in the environment of a compiled closure.
///
/// The environment holds the values of the variables. The variables are the record, and the elements that are passed to closures such as
/// the closure of `contains(where:)`.
struct Scope<Environment>: Sendable {
  /// Variable of the record, whose value is the whole environment, or `nil` in the scope of a closure.
  private let item: PredicateExpressions.Variable<Environment>?
  private let itemID: PredicateExpressions.VariableID?
  /// Variables that an expression inside a closure may name.
  ///
  /// In the scope of a record, `others` is empty.
  private let others: [any VariableSlot<Environment>]

  /// The variables of the scope, each in a slot with the path to its value.
  ///
  /// The slot of the record variable is created at each access and not stored, because most comparisons are analyzed without it.
  private var slots: [any VariableSlot<Environment>] {
    // The path to the record is `\.self` with `isAll`, because the record is the whole environment. `appending` returns a path that is
    // appended to `\.self` unchanged, so that the path equals the key path that an index declares.
    guard let item else { return others }
    return [Slot<Environment, Environment>(variable: item, path: ValuePath(keyPath: \.self, isAll: true))]
  }

  /// Creates the empty scope, in which only expressions without variables compile.
  init() { self.init(slots: []) }

  /// Creates the scope of a predicate on a record.
  init(item variable: PredicateExpressions.Variable<Environment>) { (item, itemID, others) = (variable, variable.key, []) }

  private init(slots: [any VariableSlot<Environment>]) { (item, itemID, others) = (nil, nil, slots) }

  /// Returns true if a variable is the record, which is the whole environment.
  func isItem(_ variable: PredicateExpressions.Variable<Environment>) -> Bool { itemID == variable.key }

  /// Returns the scope inside a closure to which an element is passed.
  func nested<Element>(_ variable: PredicateExpressions.Variable<Element>) -> Scope<Nested<Environment, Element>> {
    // A closure may also name the variables of the scope around the closure. Inside the closure, the paths to outer variables begin at the
    // outer environment.
    let outer = slots.compactMap { $0.moved(into: Element.self) }
    let own = Slot<Nested<Environment, Element>, Element>(variable: variable, path: ValuePath(keyPath: \.element))
    return Scope<Nested<Environment, Element>>(slots: outer + [own])
  }

  /// Returns the path to the value of a variable in the environment.
  ///
  /// - Throws: `.unsupported` for a variable that is not in the scope.
  func path<Value>(to variable: PredicateExpressions.Variable<Value>) throws(RepositoryError) -> ValuePath<Environment, Value> {
    for slot in slots where slot.id == variable.key {
      // The identifier of a variable determines the type of its value, but the compiler cannot infer that type, so the slot is cast.
      if let slot = slot as? Slot<Environment, Value> { return slot.path }
    }
    throw RepositoryError(.unsupported, "a predicate names a variable that is not bound")
  }

  /// Binds every variable of the scope to its value, for an evaluation by Foundation.
  func bind(_ environment: Environment, _ bindings: inout PredicateBindings) {
    for slot in slots { slot.bind(environment, &bindings) }
  }
}

/// The environment inside a closure: the outer environment, and the element that is passed to the closure.
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

/// A key path from an environment to a value.
struct ValuePath<Environment, Output>: Sendable {
  let keyPath: any KeyPath<Environment, Output> & Sendable
  /// True if the value is the environment itself, so that the key path is `\.self`.
  var isAll = false

  /// Returns the path to a part of the value.
  ///
  /// A path that is appended to the whole environment is returned unchanged, so that it equals the key path that an index declares.
  func appending<Part>(_ next: ValuePath<Output, Part>) -> ValuePath<Environment, Part>? {
    if next.isAll, let same = recast(keyPath, to: (any KeyPath<Environment, Part> & Sendable).self) {
      return ValuePath<Environment, Part>(keyPath: same, isAll: isAll)
    }
    if isAll, let same = recast(next.keyPath, to: (any KeyPath<Environment, Part> & Sendable).self) {
      return ValuePath<Environment, Part>(keyPath: same)
    }
    // The standard library does not declare a joined key path as `Sendable`. A key path made of two sendable parts is sendable, so the cast
    // is safe.
    let appended = (keyPath as KeyPath<Environment, Output>).appending(path: next.keyPath as KeyPath<Output, Part>)
    return recast(appended, to: (any KeyPath<Environment, Part> & Sendable).self).map { ValuePath<Environment, Part>(keyPath: $0) }
  }
}

extension Compiled {
  /// Creates a compiled expression that reads the value at a path.
  init(path: ValuePath<Environment, Output>) {
    let keyPath = path.keyPath
    self.init(path: path) { $0[keyPath: keyPath as KeyPath<Environment, Output>] }
  }
}

/// Casts a value to a type that generic code cannot name statically, or returns `nil` if the value has another type.
///
/// Casts to `Sendable` types are not checked at run time, so both types of a `recast` must be sendable. All callers of `recast` pass only
/// sendable types.
func recast<Value, Other>(_ value: Value, to type: Other.Type) -> Other? { value as? Other }
