internal import Dispatch
internal import Foundation
internal import Synchronization

/// Functions that split an array into parts and transform the parts on all cores.
///
/// The results are in the order of the array's parts. An empty array has no parts and therefore no results.
enum ConcurrentMap {
  /// Number of array elements that one child task transforms.
  ///
  /// An array of at most `partSize` elements is transformed by the caller's own task.
  static let partSize = 512
  /// Number of array elements that ``blockingMap(_:_:)`` passes to a thread together.
  private static let blockingPartSize = 2 * partSize

  // MARK: For tasks

  /// Splits an array into parts, transforms each part in a child task of the caller, and returns the results in order.
  ///
  /// The child tasks have the caller's priority and its task-local values.
  nonisolated(nonsending) static func parts<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @escaping @Sendable (ArraySlice<Element>) -> Output
  ) async -> [Output] {
    // For an array of at most `partSize` elements, starting tasks would cost more time than they save.
    guard elements.count > partSize else { return elements.isEmpty ? [] : [transform(elements[...])] }
    return await withTaskGroup(of: (part: Int, output: Output).self) { group in
      for (part, range) in ranges(elements.count, partSize).enumerated() {
        group.addTask { (part, transform(elements[range])) }
      }
      var outputs: [(part: Int, output: Output)] = []
      for await output in group { outputs.append(output) }
      // Child tasks end in any order, and the results must be in the order of the array's parts.
      return outputs.sorted { $0.part < $1.part }.map(\.output)
    }
  }

  // MARK: For threads that may block

  /// Returns the transform of each element, computed on several threads.
  ///
  /// `blockingMap` blocks its thread. Call `blockingMap` only on the store's executor or on a Dispatch queue, never in a task of Swift's
  /// cooperative pool.
  static func blockingMap<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @Sendable (Element) -> Output
  ) -> [Output] {
    let parts = blockingParts(elements, of: blockingPartSize) { $0.map(transform) }
    return parts.count == 1 ? parts[0] : Array(parts.joined())
  }

  /// Splits an array into a few large parts and returns the transform of each part, for callers that merge the results at a cost.
  ///
  /// `blockingParts` blocks its thread until all parts of the array are transformed.
  static func blockingParts<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ transform: @Sendable (ArraySlice<Element>) -> Output
  ) -> [Output] {
    // The array is split into twice as many parts as there are cores, so that a core that ends its part early can work on another part.
    let count = 2 * max(1, ProcessInfo.processInfo.activeProcessorCount)
    return blockingParts(elements, of: max(blockingPartSize, (elements.count + count - 1) / count), transform)
  }

  /// Splits an array into parts of `size` elements, and returns the transform of each part.
  ///
  /// `blockingParts` blocks its thread until all parts of the array are transformed.
  static func blockingParts<Element: Sendable, Output: Sendable>(
    _ elements: [Element], of size: Int, _ transform: @Sendable (ArraySlice<Element>) -> Output
  ) -> [Output] {
    guard elements.count > size else { return elements.isEmpty ? [] : [transform(elements[...])] }
    let ranges = ranges(elements.count, size)
    let outputs = Mutex([Output?](repeating: nil, count: ranges.count))
    // `concurrentPerform` also works on the calling thread, so the transform ends even if no other thread is free.
    DispatchQueue.concurrentPerform(iterations: ranges.count) { part in
      // The transform runs outside the lock of `outputs`, because under the lock only one thread at a time could work.
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
  /// Returns the elements sorted by `precedes`, or `nil` if `isGivenUp` has returned true during the sort.
  ///
  /// Sorting a hundred thousand records takes longer than a store may take to suspend, so `isGivenUp` can end the sort early.
  /// - Parameter isGivenUp: Returns whether to end the sort. `isGivenUp` is called at every comparison, so it must be cheap.
  func sorted(by precedes: (Element, Element) -> Bool, unless isGivenUp: () -> Bool) -> [Element]? {
    do {
      return try sorted { left, right in
        // Throwing an error from the comparison is the only way to end the standard library's sort early.
        if isGivenUp() { throw CancellationError() }
        return precedes(left, right)
      }
    } catch {
      return nil
    }
  }
}

extension Array {
  /// Merges two sorted arrays into one, with an element of this array before an equal element of `other`.
  func merged(with other: [Element], by precedes: (Element, Element) -> Bool) -> [Element] {
    var merged: [Element] = []
    merged.reserveCapacity(count + other.count)
    var next = 0
    for element in other {
      // With the arguments of `precedes` exchanged, an element of `other` would come before an equal element of `self`.
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
