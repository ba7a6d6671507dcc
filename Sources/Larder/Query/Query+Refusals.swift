public import Foundation

// Overloads that no program can call: the compiler chooses them where no other one fits, and then shows their message.
extension Query {
  /// Refuses to compile a trailing closure in the place of a predicate, and names the call that takes one.
  ///
  /// The first parameter keeps it from the calls that pass a predicate: the compiler would explain a typing error in one by this overload.
  @available(
    *, unavailable,
    message: "a condition is a predicate, which can use an index: write where(#Predicate { … }); for a closure, write filter { … }"
  )
  @_disfavoredOverload
  public func `where`(_ unused: Void = (), _ isIncluded: @escaping @Sendable (Item) -> Bool) -> Self { filter(isIncluded) }

  /// Refuses to compile an order by a property whose type has none, and names the conformances that give it one.
  @available(
    *, unavailable,
    message: "an order needs a property whose type is Comparable or IndexableValue; add one: 'enum Kind: String, Codable, IndexableValue'"
  )
  @_disfavoredOverload
  public func sorted(by keyPath: any PartialKeyPath<Item> & Sendable, _ order: SortOrder = .forward) -> Self { self }
}
