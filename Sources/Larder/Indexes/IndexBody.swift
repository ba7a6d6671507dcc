/// The content of an index, as far as there is any.
enum IndexBody: Sendable {
  /// No query has needed the index yet.
  case absent
  /// The index is being built from an earlier state; what has changed since is applied to it at the end.
  case building([IndexChange])
  /// The index is built, and what has changed since is applied to it when somebody asks; see ``FollowedIndex``.
  case followed(FollowedIndex)
  case ordered(PersistentTree<IndexEntry>)
  case geo(GeoIndex)
  case text(TextIndex)

  /// Whether queries can use the index.
  var isBuilt: Bool {
    switch self {
    case .absent, .building: false
    case .followed, .ordered, .geo, .text: true
    }
  }
}

/// A change of one record, as indexes follow it: what it was, and what it is now.
struct IndexChange: Sendable {
  let old: RecordSlot?
  let new: RecordSlot?
}

extension IndexDefinition {
  /// Follows changes of records in their order.
  func apply(_ changes: some Collection<IndexChange>, to body: inout IndexBody) {
    if case .text(var text) = body {
      body = .absent
      text.apply(changes.lazy.map { TextChange($0, self) })
      body = .text(text)
    } else {
      for change in changes { _ = apply(change, to: &body) }
    }
  }

  /// Follows a change of one record in an index that is built.
  /// - Returns: Whether the index is unique and holds the new values for another record, too.
  func apply(_ change: IndexChange, to body: inout IndexBody) -> Bool {
    let (old, new) = (change.old, change.new)
    var isContested = false
    switch body {
    case .absent, .building, .followed:
      break
    case .ordered(var tree):
      // Taken out of the body while it is changed, so that it has one owner and changes in place.
      body = .absent
      let (before, after) = (old.flatMap(entry), new.flatMap(entry))
      // Where the values are the same, the new entry takes the place of the old one.
      let isMoved = before != after
      if let before, isMoved, tree.remove(before) == nil { tree.sweep(before.slot.key) }
      if let after {
        if isUnique, isMoved {
          // Entries with the same values lie side by side. The first of them came alone, so it is enough to look when the second one comes.
          let (left, right) = tree.neighbours(of: after)
          isContested = (left?.hasValues(of: after) == true || right?.hasValues(of: after) == true) && !after.hasNull
        }
        // The same values as before, which nevertheless were not there: the record had others when the index was made.
        if tree.insert(after) == nil, before != nil, !isMoved { tree.sweep(after.slot.key, butFor: after.slot) }
      }
      body = .ordered(tree)
    case .geo(var geo):
      body = .absent
      if let old, let place = place(old), !geo.remove(old.key, at: place) { geo.sweep(old.key) }
      if let new, let place = place(new) { geo.insert(new, at: place) }
      body = .geo(geo)
    case .text(var text):
      body = .absent
      text.apply(CollectionOfOne(TextChange(change, self)))
      body = .text(text)
    }
    return isContested
  }
}

extension TextChange {
  init(_ change: IndexChange, _ definition: IndexDefinition) {
    self.init(
      old: change.old.flatMap { slot in definition.texts(slot).map { (slot, $0) } },
      new: change.new.flatMap { slot in definition.texts(slot).map { (slot, $0) } })
  }
}
