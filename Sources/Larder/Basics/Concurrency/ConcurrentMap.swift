internal import Dispatch
internal import Foundation
internal import Synchronization

/// Functions that transform the parts of an array on all cores.
///
/// The results are in the order of the parts. An empty array has none.
enum ConcurrentMap {
  /// Number of elements in a part, for tasks.
  ///
  /// An array that is no larger is transformed by the caller's own task.
  static let partSize = 512
  /// Number of elements in a part, for threads that may block.
  private static let blockingPartSize = 2 * partSize

  // MARK: For tasks

  /// Returns the transform of each part, made by child tasks of the caller.
  ///
  /// The tasks have the caller's priority and its task-local values.
  nonisolated(nonsending) static func parts<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @escaping @Sendable (ArraySlice<Element>) -> Output
  ) async -> [Output] {
    // For so few elements, tasks would cost more than they save.
    guard elements.count > partSize else { return elements.isEmpty ? [] : [transform(elements[...])] }
    return await withTaskGroup(of: (part: Int, output: Output).self) { group in
      for (part, range) in ranges(elements.count, partSize).enumerated() {
        group.addTask { (part, transform(elements[range])) }
      }
      var outputs: [(part: Int, output: Output)] = []
      for await output in group { outputs.append(output) }
      // Tasks end in any order.
      return outputs.sorted { $0.part < $1.part }.map(\.output)
    }
  }

  // MARK: For threads that may block

  /// Returns the transform of each element.
  ///
  /// Blocks the thread: only for the store's executor or a queue of the system's.
  static func blockingMap<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @Sendable (Element) -> Output
  ) -> [Output] {
    let parts = blockingParts(elements, of: blockingPartSize) { $0.map(transform) }
    return parts.count == 1 ? parts[0] : Array(parts.joined())
  }

  /// Returns the transform of a few large parts, for work whose results are costly to join.
  ///
  /// Blocks the thread.
  static func blockingParts<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @Sendable (ArraySlice<Element>) -> Output
  ) -> [Output] {
    // Twice as many parts as cores, so that no core is idle for long at the end.
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
    // This works on the calling thread too, so it ends even if no other thread is free.
    DispatchQueue.concurrentPerform(iterations: ranges.count) { part in
      // Transformed without the lock, which would let one thread work at a time.
      let output = transform(elements[ranges[part]])
      outputs.withLock { $0[part] = output }
    }
    return outputs.withLock { $0.compactMap(\.self) }
  }

  private static func ranges(_ count: Int, _ size: Int) -> [Range<Int>] {
    stride(from: 0, to: count, by: size).map { $0..<min($0 + size, count) }
  }
}

extension Collection {
  /// Returns the elements in order, or `nil` if the sort was given up.
  ///
  /// Sorting a hundred thousand records takes longer than a store may take to be suspended.
  /// - Parameter isGivenUp: Called at every comparison, so it must be cheap.
  func sorted(by precedes: (Element, Element) -> Bool, unless isGivenUp: () -> Bool) -> [Element]? {
    do {
      return try sorted { left, right in
        // An error is the only way to end the standard library's sort early.
        if isGivenUp() { throw CancellationError() }
        return precedes(left, right)
      }
    } catch {
      return nil
    }
  }
}

extension Array {
  /// Returns the elements of two sorted arrays in order, and of equal ones those of this array first.
  func merged(with other: [Element], by precedes: (Element, Element) -> Bool) -> [Element] {
    var merged: [Element] = []
    merged.reserveCapacity(count + other.count)
    var next = 0
    for element in other {
      // The arguments in the other order would put equal elements of `other` first.
      while next < count, !precedes(element, self[next]) {
        merged.append(self[next])
        next += 1
      }
      merged.append(element)
    }
    merged.append(contentsOf: self[next...])
    return merged
  }
}
