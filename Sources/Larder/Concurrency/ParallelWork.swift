internal import Dispatch
internal import Foundation
internal import Synchronization

/// Blocking work on all cores, for threads that may block: the store's executor, or a queue of the system's.
enum ParallelWork {
  /// How many elements one piece of work takes.
  private static let chunk = 1_024

  /// Returns what the transform makes of each element, in order.
  static func map<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @Sendable (Element) -> Output
  ) -> [Output] {
    let parts = mapChunks(elements) { $0.map(transform) }
    return parts.count == 1 ? parts[0] : Array(parts.joined())
  }

  /// Returns what the transform makes of each stretch of elements, in order; of none, nothing.
  static func mapChunks<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @Sendable (ArraySlice<Element>) -> Output
  ) -> [Output] { mapChunks(elements, of: chunk, transform) }

  /// What the transform makes of a few large stretches of elements, in order: for work whose parts cost something to join.
  static func mapParts<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @Sendable (ArraySlice<Element>) -> Output
  ) -> [Output] {
    // Some more than there are cores, so that none is idle for long at the end.
    let parts = 2 * max(1, ProcessInfo.processInfo.activeProcessorCount)
    return mapChunks(elements, of: max(chunk, (elements.count + parts - 1) / parts), transform)
  }

  private static func mapChunks<Element: Sendable, Output: Sendable>(
    _ elements: [Element], of chunk: Int, _ transform: @Sendable (ArraySlice<Element>) -> Output
  ) -> [Output] {
    guard elements.count > chunk else { return elements.isEmpty ? [] : [transform(elements[...])] }
    let parts = Mutex<[Int: Output]>([:])
    let pieces = (elements.count + chunk - 1) / chunk
    DispatchQueue.concurrentPerform(iterations: pieces) { piece in
      let part = transform(elements[(piece * chunk)..<min((piece + 1) * chunk, elements.count)])
      parts.withLock { $0[piece] = part }
    }
    let done = parts.withLock { $0 }
    return (0..<pieces).compactMap { done[$0] }
  }

  /// The elements in order: halves are sorted at the same time, then merged.
  static func sorted<Element: Comparable & Sendable>(_ elements: [Element]) -> [Element] {
    guard elements.count > chunk * 4 else { return elements.sorted() }
    let middle = elements.count / 2
    let halves = Mutex([elements[..<middle], elements[middle...]].map { Array($0) })
    DispatchQueue.concurrentPerform(iterations: 2) { half in
      let sorted = halves.withLock { $0[half] }.sorted()
      halves.withLock { $0[half] = sorted }
    }
    let sorted = halves.withLock { $0 }
    return merged(sorted[0], sorted[1])
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
