/// The rules by which a record that was changed on two devices becomes one again.
///
/// A member that was changed on one side only is taken from that side. Where both sides have changed it, the policy decides, and the value
/// that was not taken is kept as a ``SyncConflict``.
public struct MergePolicy<Item: Sendable>: Sendable {
  /// The rule for a record that one side has deleted and the other has edited.
  public enum Deletion: Sendable, Hashable {
    /// The record stays, with the edit.
    case editWins
    /// The record is gone; the edit is kept as a conflict.
    case deleteWins
  }

  enum Kind: Sendable {
    case newer
    case remote
    case local
    case custom(@Sendable (_ base: Item?, _ local: Item, _ remote: Item) throws -> Item)
  }

  let kind: Kind
  let deletion: Deletion
  let counters: [any PartialKeyPath<Item> & Sendable]
  let sets: [any PartialKeyPath<Item> & Sendable]

  /// Merges member by member: the newer edit holds, by the server's clock.
  ///
  /// A counter or set may be within an object that the record has. One that is not found as one number or array when it is to be merged
  /// leaves the edit here, among the rejected ones.
  /// - Parameters:
  ///   - counters: Numbers of which the differences add up, so that no increment is lost or counted twice.
  ///   - sets: Arrays and sets of `Hashable` elements, of which additions and removals are merged element by element.
  ///   - deletion: Whether an edit or a deletion wins where there are both: the edit unless given.
  public static func fields(
    counters: [any PartialKeyPath<Item> & Sendable] = [], sets: [any PartialKeyPath<Item> & Sendable] = [], deletion: Deletion = .editWins
  ) -> MergePolicy {
    MergePolicy(kind: .newer, deletion: deletion, counters: counters, sets: sets)
  }

  /// Merges member by member, and takes what the server has where both sides have changed one.
  public static var remoteWins: MergePolicy { MergePolicy(kind: .remote, deletion: .editWins, counters: [], sets: []) }

  /// Merges member by member, and takes what this device has where both sides have changed one.
  public static var localWins: MergePolicy { MergePolicy(kind: .local, deletion: .editWins, counters: [], sets: []) }

  /// Merges with a closure; what it throws leaves the edit here, among the rejected ones.
  ///
  /// The closure must not change the id. `base` is the value that both sides began with. It is `nil` where both have inserted the
  /// record, and where this side has deleted it and inserted another one.
  public static func custom(
    deletion: Deletion = .editWins, _ merge: @escaping @Sendable (_ base: Item?, _ local: Item, _ remote: Item) throws -> Item
  ) -> MergePolicy {
    MergePolicy(kind: .custom(merge), deletion: deletion, counters: [], sets: [])
  }
}
