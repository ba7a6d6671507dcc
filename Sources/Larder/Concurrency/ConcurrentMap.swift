internal import Dispatch
internal import Foundation
internal import Synchronization

/// Work on the parts of an array, on as many cores as there are.
///
/// Results come in the order of the parts, and no elements give none.
enum ConcurrentMap {
  /// The number of elements in a part, for tasks.
  ///
  /// Fewer in all are worked on where they are.
  static let partSize = 512
  /// The number of elements in a part, for threads that may block.
  private static let blockingPartSize = 2 * partSize

  // MARK: For tasks

  /// Returns the transform of each part, made by child tasks of the caller: they have its priority and its task-local values.
  nonisolated(nonsending) static func parts<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @escaping @Sendable (ArraySlice<Element>) -> Output
  ) async -> [Output] {
    guard elements.count > partSize else { return elements.isEmpty ? [] : [transform(elements[...])] }
    return await withTaskGroup(of: (part: Int, output: Output).self) { group in
      for (part, range) in ranges(elements.count, partSize).enumerated() {
        group.addTask { (part, transform(elements[range])) }
      }
      var outputs: [(part: Int, output: Output)] = []
      for await output in group { outputs.append(output) }
      return outputs.sorted { $0.part < $1.part }.map(\.output)
    }
  }

  // MARK: For threads that may block

  /// Returns the transform of each element.
  ///
  /// Blocks the thread: for the store's executor, or a queue of the system's.
  static func blockingMap<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @Sendable (Element) -> Output
  ) -> [Output] {
    let parts = blockingParts(elements, of: blockingPartSize) { $0.map(transform) }
    return parts.count == 1 ? parts[0] : Array(parts.joined())
  }

  /// Returns the transform of a few large parts: for work whose results are costly to join.
  ///
  /// Blocks the thread.
  static func blockingParts<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @Sendable (ArraySlice<Element>) -> Output
  ) -> [Output] {
    // Some more parts than there are cores, so that none is idle for long at the end.
    let count = 2 * max(1, ProcessInfo.processInfo.activeProcessorCount)
    return blockingParts(elements, of: max(blockingPartSize, (elements.count + count - 1) / count), transform)
  }

  /// Returns the transform of parts of a given size.
  ///
  /// Blocks the thread.
  static func blockingParts<Element: Sendable, Output: Sendable>(
    _ elements: [Element], of size: Int, _ transform: @Sendable (ArraySlice<Element>) -> Output
  ) -> [Output] {
    guard elements.count > size else { return elements.isEmpty ? [] : [transform(elements[...])] }
    let ranges = ranges(elements.count, size)
    let outputs = Mutex([Output?](repeating: nil, count: ranges.count))
    DispatchQueue.concurrentPerform(iterations: ranges.count) { part in
      let output = transform(elements[ranges[part]])
      outputs.withLock { $0[part] = output }
    }
    return outputs.withLock { $0.compactMap(\.self) }
  }

  /// Returns the elements in order: halves are sorted at the same time, then merged.
  ///
  /// Blocks the thread.
  static func blockingSorted<Element: Comparable & Sendable>(_ elements: [Element]) -> [Element] {
    guard elements.count > blockingPartSize * 4 else { return elements.sorted() }
    let halves = blockingParts(elements, of: (elements.count + 1) / 2) { $0.sorted() }
    return merged(halves[0], halves[1], by: <)
  }

  /// Returns the elements of two arrays that are in an order, in that order.
  static func merged<Element>(_ left: [Element], _ right: [Element], by precedes: (Element, Element) -> Bool) -> [Element] {
    var merged: [Element] = []
    merged.reserveCapacity(left.count + right.count)
    var (first, second) = (0, 0)
    while first < left.count, second < right.count {
      if precedes(right[second], left[first]) {
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

  private static func ranges(_ count: Int, _ size: Int) -> [Range<Int>] {
    stride(from: 0, to: count, by: size).map { $0..<min($0 + size, count) }
  }
}
