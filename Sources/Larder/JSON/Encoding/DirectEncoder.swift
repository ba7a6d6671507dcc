// Encoding/ encodes values straight into bytes, with the names of each object sorted.
// Invariant: the bytes are those of Foundation's encoder with sorted keys, nested no deeper than the limit.
// Called by JSONCoder.

internal import Foundation

/// A JSON encoder that writes values straight to bytes, without a tree of values between.
///
/// It writes the same bytes as Foundation's `JSONEncoder` with sorted names and without escaped slashes. Sets, and dictionaries that become
/// arrays, are an exception: they are sorted (see ``UnorderedEncodable``). The encoder checks a limit of depth while it writes, because a
/// deeper value would overflow the stack of its thread.
struct DirectEncoder: Sendable {
  /// Deepest nesting of arrays and objects that is written.
  let depthLimit: Int

  /// The JSON of a value.
  struct Output {
    let json: Data
    /// Whether a number has more than 25 characters or an exponent of three digits, so that some types cannot decode it.
    let hasUnusualNumber: Bool
  }

  /// Encodes a value as JSON.
  ///
  /// Cost: about 22,000 instructions for a record of eleven properties.
  /// - Throws: ``JSONTooDeep``, `EncodingError`, or the error of the value's own `encode(to:)`.
  func encode(_ value: some Encodable) throws -> Output {
    let writer = EncodingWriter(EncodingTally(depthLimit: depthLimit), depth: 0, path: [])
    do {
      try writer.encode(value, .none)
    } catch {
      // A type may have caught the error of depth and thrown another.
      throw writer.tally.isTooDeep ? JSONTooDeep(limit: depthLimit) : error
    }
    // A type may also have caught these errors and gone on, and the text then lacks a part.
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

/// Findings that all writers of one value's encoding share.
final class EncodingTally {
  let depthLimit: Int
  /// Number of nested values at which encoding stops.
  ///
  /// It counts values that leave no bracket in the text, such as optionals and raw values.
  let levelLimit: Int
  /// Behind a pointer for the reason that ``EncodingWriter`` gives.
  private let state: UnsafeMutablePointer<State>

  private struct State {
    var isOver = false
    var isTooDeep = false
    var hasUnusualNumber = false
    var misuse: EncodingError?
  }

  init(depthLimit: Int) {
    self.depthLimit = depthLimit
    // Twice, since each array or object may hold its values in optionals.
    levelLimit = 2 * depthLimit + 64
    state = .allocate(capacity: 1)
    state.initialize(to: State())
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// Whether the encoding has failed, so that nothing more is written.
  var isOver: Bool { @inline(__always) get { state.pointee.isOver } }
  var isTooDeep: Bool {
    get { state.pointee.isTooDeep }
    set { (state.pointee.isTooDeep, state.pointee.isOver) = (newValue, state.pointee.isOver || newValue) }
  }
  var hasUnusualNumber: Bool {
    get { state.pointee.hasUnusualNumber }
    set { state.pointee.hasUnusualNumber = newValue }
  }
  /// A use of a container that could not be written and had no way to throw.
  var misuse: EncodingError? {
    get { state.pointee.misuse }
    set { (state.pointee.misuse, state.pointee.isOver) = (newValue, state.pointee.isOver || newValue != nil) }
  }
}
