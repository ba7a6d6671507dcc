internal import Dispatch
internal import Synchronization

/// Blocking work on all cores, for threads that may block: the store's executor, or a queue of the system's.
enum ParallelWork {
  /// How many elements one piece of work takes.
  private static let chunk = 1_024

  /// What the transform makes of each element, in order.
  static func map<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @Sendable (Element) -> Output
  ) -> [Output] {
    guard elements.count > chunk else { return elements.map(transform) }
    let parts = Mutex<[Int: [Output]]>([:])
    let pieces = (elements.count + chunk - 1) / chunk
    DispatchQueue.concurrentPerform(iterations: pieces) { piece in
      let part = elements[(piece * chunk)..<min((piece + 1) * chunk, elements.count)].map(transform)
      parts.withLock { $0[piece] = part }
    }
    let done = parts.withLock { $0 }
    var outputs: [Output] = []
    outputs.reserveCapacity(elements.count)
    for piece in 0..<pieces { outputs += done[piece] ?? [] }
    return outputs
  }

  /// The elements in order: halves are sorted at the same time, then merged.
  static func sorted<Element: Comparable & Sendable>(_ elements: [Element]) -> [Element] {
    guard elements.count > chunk * 4 else { return elements.sorted() }
    let middle = elements.count / 2
    let halves = map(ofTwo: [Array(elements[..<middle]), Array(elements[middle...])]) { $0.sorted() }
    return merged(halves[0], halves[1])
  }

  private static func map<Element: Sendable>(
    ofTwo halves: [[Element]], _ transform: @Sendable ([Element]) -> [Element]
  ) -> [[Element]] {
    let done = Mutex(halves)
    DispatchQueue.concurrentPerform(iterations: 2) { half in
      let result = transform(halves[half])
      done.withLock { $0[half] = result }
    }
    return done.withLock { $0 }
  }

  private static func merged<Element: Comparable>(_ left: [Element], _ right: [Element]) -> [Element] {
    var merged: [Element] = []
    merged.reserveCapacity(left.count + right.count)
    var (first, second) = (0, 0)
    while first < left.count, second < right.count {
      if right[second] < left[first] {
        merged.append(right[second])
        second += 1
      } else {
        merged.append(left[first])
        first += 1
      }
    }
    merged += left[first...]
    merged += right[second...]
    return merged
  }
}
