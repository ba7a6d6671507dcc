internal import Larder

/// The entries of one scope that are to be sent: found by group, the oldest first, without a look at all of them.
struct SendQueue: Sendable {
  /// The keys of each group; a key may be in several, and may be there no longer.
  private var members: [UInt64: OrderedQueue<RecordKey>] = [:]
  private var groups = OrderedQueue<UInt64>()
  /// The keys of entries without a group, which were there before they were synced.
  private var alone = OrderedQueue<RecordKey>()
  /// The number of entries that are to be sent.
  var count = 0

  /// The entries of the next push.
  struct Candidates: Sendable {
    var keys: [RecordKey] = []
    /// Whether they are a part of a group that does not fit into any push.
    var isDivided = false
  }

  mutating func add(_ key: RecordKey, to group: UInt64?) {
    guard let group else { return alone.append(key) }
    if members[group] == nil { groups.append(group) }
    members[group, default: OrderedQueue()].append(key)
  }

  /// Returns the entries of the next push: whole groups with those that share a record with them, as many as fit; of a group that does not
  /// fit into any push, a part.
  ///
  /// Cost: in proportion to what is returned, but for entries that are to be sent no longer, each of which is met once.
  /// - Parameter groupsOf: Returns the groups of an entry that is to be sent to this scope; `nil` for any other.
  mutating func next(_ limit: Int, _ groupsOf: (RecordKey) -> [UInt64]?) -> Candidates {
    var chosen: [RecordKey] = []
    var (keys, seen) = (Set<RecordKey>(), Set<UInt64>())
    do {
      let members = members
      groups.prepare { members[$0] != nil }
    }
    for position in groups.indices where !seen.contains(groups[position]) {
      let component = component(of: groups[position], limit, &keys, &seen, groupsOf)
      if component.count > limit, chosen.isEmpty { return Candidates(keys: Array(component.prefix(limit)), isDivided: true) }
      if chosen.count + component.count > limit { return Candidates(keys: chosen) }
      chosen += component
      if chosen.count == limit { return Candidates(keys: chosen) }
    }
    alone.prepare { groupsOf($0)?.isEmpty == true }
    for position in alone.indices where chosen.count < limit {
      let key = alone[position]
      if groupsOf(key)?.isEmpty == true, keys.insert(key).inserted { chosen.append(key) }
    }
    return Candidates(keys: chosen)
  }

  /// Returns the entries that share a group with those of one, directly or by way of others; one more than the limit at most.
  private mutating func component(
    of group: UInt64, _ limit: Int, _ keys: inout Set<RecordKey>, _ seen: inout Set<UInt64>, _ groupsOf: (RecordKey) -> [UInt64]?
  ) -> [RecordKey] {
    var component: [RecordKey] = []
    var waiting = [group]
    while let group = waiting.popLast() {
      guard seen.insert(group).inserted, var queue = members.removeValue(forKey: group) else { continue }
      queue.prepare { groupsOf($0)?.contains(group) == true }
      // A group that has nobody left is forgotten.
      if queue.indices.isEmpty { continue }
      defer { members[group] = queue }
      for position in queue.indices {
        let key = queue[position]
        guard let groups = groupsOf(key), groups.contains(group), keys.insert(key).inserted else { continue }
        component.append(key)
        if component.count > limit { return component }
        for group in groups where !seen.contains(group) { waiting.append(group) }
      }
    }
    return component
  }
}
