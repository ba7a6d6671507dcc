// Encoding/ encodes values straight into bytes, with the names of each object sorted.
// Invariant: the bytes are those of Foundation's encoder with sorted keys. Only the arrays of sets and of dictionaries differ, because
// Larder's encoder sorts their elements. Arrays and objects nest no deeper than the depth limit.
// Called by JSONCoder.

internal import Foundation

/// A JSON encoder that writes values straight to bytes, without a tree of JSON values in between.
///
/// The bytes are those of Foundation's `JSONEncoder` with sorted names and without escaped slashes, with one exception: the elements of
/// sets, and of dictionaries that are encoded as arrays, are sorted (see ``UnorderedEncodable``). The encoder checks the depth limit while
/// it writes, because a value that is nested very deeply would overflow the stack of its thread.
struct DirectEncoder: Sendable {
  /// Deepest nesting of arrays and objects that the encoder writes.
  let depthLimit: Int

  /// The JSON of one value, and whether the JSON has a number that some types cannot decode.
  struct Output {
    let json: Data
    /// True if a number has more than 25 characters or an exponent of three digits, which some types cannot decode.
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
      // The value's `encode(to:)` may have caught the error of the depth limit and thrown another error, which would hide the cause.
      throw writer.tally.isTooDeep ? JSONTooDeep(limit: depthLimit) : error
    }
    // The value's `encode(to:)` may also have caught the error of the depth limit, or of a misused container, and continued. The JSON of a
    // value that has continued after an error lacks a part, and must not be stored.
    if writer.tally.isTooDeep { throw JSONTooDeep(limit: depthLimit) }
    if let misuse = writer.tally.misuse { throw misuse }
    guard writer.hasContent else { throw writer.nothingEncoded(value) }
    return Output(json: writer.bytes.data(), hasUnusualNumber: writer.tally.hasUnusualNumber)
  }
}

/// The error for a value that nests deeper than the encoder's depth limit.
struct JSONTooDeep: Error {
  let limit: Int
}

/// State that all writers of one value's encoding share: a failure, or a number that some types cannot decode.
final class EncodingTally {
  let depthLimit: Int
  /// Depth of nested values at which the encoder stops.
  ///
  /// Optionals and raw values count as levels although they write no bracket, because encoding them recurses, too.
  let levelLimit: Int
  /// Shared state, stored behind a pointer because Swift checks each access to a property of a class at run time (see ``EncodingWriter``).
  private let state: UnsafeMutablePointer<State>

  private struct State {
    var isOver = false
    var isTooDeep = false
    var hasUnusualNumber = false
    var misuse: EncodingError?
  }

  init(depthLimit: Int) {
    self.depthLimit = depthLimit
    // The limit of levels is about twice the depth limit, because each array or object may hold its values in optionals, which are levels
    // without brackets.
    levelLimit = 2 * depthLimit + 64
    state = .allocate(capacity: 1)
    state.initialize(to: State())
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// True if the encoding has failed, after which no writer writes any more bytes.
  var isOver: Bool { @inline(__always) get { state.pointee.isOver } }
  var isTooDeep: Bool {
    get { state.pointee.isTooDeep }
    set { (state.pointee.isTooDeep, state.pointee.isOver) = (newValue, state.pointee.isOver || newValue) }
  }
  var hasUnusualNumber: Bool {
    get { state.pointee.hasUnusualNumber }
    set { state.pointee.hasUnusualNumber = newValue }
  }
  /// Error for the misuse of a container in a function of the encoding protocols that cannot throw.
  var misuse: EncodingError? {
    get { state.pointee.misuse }
    set { (state.pointee.misuse, state.pointee.isOver) = (newValue, state.pointee.isOver || newValue != nil) }
  }
}
