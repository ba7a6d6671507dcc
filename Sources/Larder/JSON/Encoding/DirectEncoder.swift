internal import Foundation

/// An encoder of values straight to the bytes of JSON, without a tree between.
///
/// It writes the bytes of Foundation's `JSONEncoder` with sorted names and without escaped slashes. Sets, and dictionaries that become
/// arrays, are an exception: they are sorted, see ``UnorderedEncodable``. The encoder checks a limit of depth while it writes, because a
/// deeper value would overflow the stack of its thread.
struct DirectEncoder: Sendable {
  /// The deepest nesting of arrays and objects that is written.
  let depthLimit: Int

  /// The JSON of a value.
  struct Output {
    let json: Data
    /// Whether a number has more digits, or a larger exponent, than any `Double` is written with: whether a decoder takes it depends on
    /// the type.
    let hasUnusualNumber: Bool
  }

  /// Returns a value as JSON.
  ///
  /// Cost: about 22,000 instructions for a record of eleven properties.
  /// - Throws: ``JSONTooDeep``; `EncodingError`; what the value itself throws.
  func encode(_ value: some Encodable) throws -> Output {
    let writer = EncodingWriter(EncodingTally(depthLimit: depthLimit), depth: 0, path: [])
    do {
      try writer.encode(value, .none)
    } catch {
      // Whatever the value has made of it.
      throw writer.tally.isTooDeep ? JSONTooDeep(limit: depthLimit) : error
    }
    if writer.tally.isTooDeep { throw JSONTooDeep(limit: depthLimit) }
    if let misuse = writer.tally.misuse { throw misuse }
    guard writer.hasContent else { throw writer.nothingEncoded(value) }
    return Output(json: writer.bytes.data(), hasUnusualNumber: writer.tally.hasUnusualNumber)
  }
}

/// The error for a value that nests deeper than a limit.
struct JSONTooDeep: Error {
  let limit: Int
}

/// The findings that all parts of one value's encoding share.
final class EncodingTally {
  let depthLimit: Int
  /// The number of values in each other at which encoding stops, those counted that leave no bracket in the text: an optional, a raw value.
  let levelLimit: Int
  /// Behind a pointer, as the state of an ``EncodingWriter``.
  private let state: UnsafeMutablePointer<State>

  private struct State {
    var isOver = false
    var isTooDeep = false
    var hasUnusualNumber = false
    var misuse: EncodingError?
  }

  init(depthLimit: Int) {
    self.depthLimit = depthLimit
    levelLimit = 2 * depthLimit + 64
    state = .allocate(capacity: 1)
    state.initialize(to: State())
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// Whether the encoding fails, whatever comes: nothing more is written.
  var isOver: Bool { @inline(__always) get { state.pointee.isOver } }
  var isTooDeep: Bool {
    get { state.pointee.isTooDeep }
    set { (state.pointee.isTooDeep, state.pointee.isOver) = (newValue, state.pointee.isOver || newValue) }
  }
  var hasUnusualNumber: Bool {
    get { state.pointee.hasUnusualNumber }
    set { state.pointee.hasUnusualNumber = newValue }
  }
  /// The use of a container that cannot be written, and that had no way to throw.
  var misuse: EncodingError? {
    get { state.pointee.misuse }
    set { (state.pointee.misuse, state.pointee.isOver) = (newValue, state.pointee.isOver || newValue != nil) }
  }
}
