public import Foundation

/// A failure of a store, as one value that can be matched, shown and logged.
///
/// Match on ``code``, which can stand in a `catch` directly:
///
/// ```swift
/// do {
///   try await spots.insert(spot)
/// } catch RepositoryError.Code.alreadyExists {
///   …
/// } catch {
///   …  // here `error` is a `RepositoryError`
/// }
/// ```
///
/// End with a `catch` that takes the rest: Swift 6.3.1 crashes when it compiles a `do` that leaves typed errors uncaught, if the same
/// function uses `??` before it.
///
/// Absence is never an error: ``LocalRepository/find(by:)`` returns `nil`. And an error is never absence: storage that cannot be read
/// throws.
///
/// The description names codes, files, offsets and hashes of keys, never the contents of a record. Its wording may change, so match on
/// codes.
///
/// ## Topics
///
/// ### Matching
///
/// - ``code-swift.property``
/// - ``Code-swift.struct``
/// - ``versions-swift.property``
///
/// ### Showing and logging
///
/// - ``message``
/// - ``file``
/// - ``offset``
/// - ``keyHash``
/// - ``underlying``
/// - ``errorDescription``
public struct RepositoryError: Error, Sendable {
  /// Kind of the failure.
  public let code: Code
  /// Failure in words, which never hold the contents of a record.
  public let message: String
  /// Path of the file concerned, if there is one.
  public let file: String?
  /// Byte offset in ``file`` at which the problem begins, if it is known.
  public let offset: UInt64?
  /// Hash of the key concerned (see ``RecordKey/hash``), if there is one.
  public let keyHash: String?
  /// Version found and newest version supported, if the code is ``Code/newerSchema``.
  public let versions: Versions?
  /// Error that caused this one.
  ///
  /// It may hold record contents (an `EncodingError` prints its whole value), so do not log it unread.
  public let underlying: (any Error)?

  /// A version that was found, and the newest that this code understands.
  public struct Versions: Hashable, Sendable {
    /// Version that the file or record carries.
    public let found: Int
    /// Newest version that can be read.
    public let supported: Int

    /// Makes the pair.
    public init(found: Int, supported: Int) {
      self.found = found
      self.supported = supported
    }
  }

  /// Makes an error.
  ///
  /// Use it in a backend outside this package. The message is words for a person. It must not hold the contents of a record.
  public init(
    _ code: Code, _ message: String = "", file: String? = nil, offset: UInt64? = nil, keyHash: String? = nil,
    versions: Versions? = nil, underlying: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.file = file
    self.offset = offset
    self.keyHash = keyHash
    self.versions = versions
    self.underlying = underlying
  }
}

extension RepositoryError {
  /// The kinds of failure.
  ///
  /// New ones may be added, so a `switch` needs a `default`.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    // These names are printed and stored in statistics, so none may change.
    private enum Name: String {
      case corrupted, newerSchema, notOurStore, dataMissing, protectedDataUnavailable, locked, alreadyOpen, migrationFailed
      case encodingFailed, decodingFailed, invalidKey, tooLarge, inputOutput, full, outcomeUnknown, poisoned, closed, cancelled, suspended
      case notFound, alreadyExists, revisionMismatch, uniqueViolation, unsupported
    }
    private let name: Name

    /// Stored data is damaged.
    ///
    /// The file is left as it was found.
    public static let corrupted = Code(name: .corrupted)
    /// The file or record was written by a newer version.
    ///
    /// It is left as it was found.
    public static let newerSchema = Code(name: .newerSchema)
    /// The file belongs to another program.
    ///
    /// It is left as it was found.
    public static let notOurStore = Code(name: .notOurStore)
    /// Files that must be there are gone.
    ///
    /// The files that are left are not touched.
    public static let dataMissing = Code(name: .dataMissing)
    /// The system refuses access: permissions, or a device that was not unlocked yet.
    ///
    /// Never means "empty".
    public static let protectedDataUnavailable = Code(name: .protectedDataUnavailable)
    /// Another process has the store open.
    public static let locked = Code(name: .locked)
    /// This process has the store open already.
    public static let alreadyOpen = Code(name: .alreadyOpen)
    /// A migration step failed.
    public static let migrationFailed = Code(name: .migrationFailed)
    /// The value could not be encoded, and nothing was written.
    public static let encodingFailed = Code(name: .encodingFailed)
    /// The stored bytes are whole but do not decode to the type asked for.
    ///
    /// They are kept.
    public static let decodingFailed = Code(name: .decodingFailed)
    /// The id cannot be a key: it does not encode, does not round-trip, or is too long.
    public static let invalidKey = Code(name: .invalidKey)
    /// A record is over a limit of ``StoreOptions/Limits``.
    public static let tooLarge = Code(name: .tooLarge)
    /// The system reported a failure of reading or writing.
    ///
    /// Nothing was changed by the call.
    public static let inputOutput = Code(name: .inputOutput)
    /// There is no space left.
    ///
    /// Nothing was changed by the call.
    public static let full = Code(name: .full)
    /// A sync failed after bytes were handed over, so the write may or may not survive.
    ///
    /// Reopen the store to find out.
    public static let outcomeUnknown = Code(name: .outcomeUnknown)
    /// An earlier sync failed, so writes are refused until you reopen the store.
    public static let poisoned = Code(name: .poisoned)
    /// The store was closed.
    public static let closed = Code(name: .closed)
    /// The task was cancelled before the commit point, and nothing happened.
    public static let cancelled = Code(name: .cancelled)
    /// The store is suspended, and the call needs its files or has waited for ``StoreOptions/suspensionTimeout``.
    ///
    /// Nothing happened. Call ``Store/resume()``, and try again.
    public static let suspended = Code(name: .suspended)
    /// There is no record with this id.
    public static let notFound = Code(name: .notFound)
    /// There is a record with this id already.
    public static let alreadyExists = Code(name: .alreadyExists)
    /// The record is not at the revision that was named.
    public static let revisionMismatch = Code(name: .revisionMismatch)
    /// A unique index holds this value already.
    public static let uniqueViolation = Code(name: .uniqueViolation)
    /// The store, its backend or its options cannot do this.
    ///
    /// The message says why.
    public static let unsupported = Code(name: .unsupported)

    /// Name of the code.
    public var description: String { name.rawValue }

    /// Makes the code with a name, or `nil` for a name that this version does not have.
    init?(named name: String) {
      guard let name = Name(rawValue: name) else { return nil }
      self.name = name
    }

    private init(name: Name) { self.name = name }
  }
}

extension RepositoryError: CustomStringConvertible {
  /// Code, message, file, offset and hash of the key, and never the contents of a record.
  public var description: String {
    var text = code.description
    if !message.isEmpty { text += ": \(message)" }
    if let versions { text += " (found \(versions.found), supported \(versions.supported))" }
    if let file { text += " [\(file)" + (offset.map { " at byte \($0)" } ?? "") + "]" }
    if let keyHash { text += " [key #\(keyHash)]" }
    // Only the kind of the error, whose own text may have the contents of a record.
    if let underlying { text += " (\(Self.nameOfKind(underlying)))" }
    return text
  }

  /// Returns the kind of an error without its contents.
  ///
  /// `EncodingError` would print the whole value, and `DecodingError` parts of it.
  private static func nameOfKind(_ error: any Error) -> String {
    switch error {
    case let error as RepositoryError: error.description
    case let error as SystemCallError: error.description
    case EncodingError.invalidValue: "EncodingError.invalidValue"
    case DecodingError.dataCorrupted: "DecodingError.dataCorrupted"
    case DecodingError.keyNotFound: "DecodingError.keyNotFound"
    case DecodingError.typeMismatch: "DecodingError.typeMismatch"
    case DecodingError.valueNotFound: "DecodingError.valueNotFound"
    // An unknown error may print stored values, and its type does not.
    default: String(describing: type(of: error))
    }
  }
}

extension RepositoryError: LocalizedError {
  /// Same text as ``description``, which `localizedDescription` returns.
  public var errorDescription: String? { description }
}

/// Lets a code stand in a `catch` clause.
public func ~= (code: RepositoryError.Code, error: any Error) -> Bool {
  (error as? RepositoryError)?.code == code
}

/// A system call that failed, by name and `errno`.
public struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Name of the call, such as "fdatasync".
  public let call: String
  /// Value of `errno` after the call.
  public let errorNumber: Int32

  /// Makes the description of a failed call.
  public init(call: String, errorNumber: Int32) {
    self.call = call
    self.errorNumber = errorNumber
  }

  /// Name of the call and the system's words for the error.
  public var description: String { "\(call): \(String(cString: strerror(errorNumber)))" }
}

extension SystemCallError: LocalizedError {
  /// Same text as ``description``.
  public var errorDescription: String? { description }
}

extension RepositoryError {
  /// Whether a file could not be opened, so that no call has changed it.
  var isOfOpening: Bool { (underlying as? SystemCallError)?.call == "open" }

  /// Returns the error for a system call that failed on a file.
  static func system(_ call: String, _ errorNumber: Int32, file: String, offset: Int? = nil) -> RepositoryError {
    let code: Code =
      switch errorNumber {
      // A quota and the largest size of a file end writes as a full disk does.
      case ENOSPC, EDQUOT, EFBIG: .full
      // Data protection refuses access so before the first unlock, and the data is there nevertheless.
      case EACCES, EPERM: .protectedDataUnavailable
      // Files are opened with `O_NOFOLLOW`, so this error means a symbolic link in the place of the file.
      case ELOOP: .unsupported
      default: .inputOutput
      }
    let cause = SystemCallError(call: call, errorNumber: errorNumber)
    // The system's words for this error speak of too many links, which would mislead.
    let message = errorNumber == ELOOP ? "symbolic links are not followed" : "the system refused \(cause) (errno \(errorNumber))"
    return RepositoryError(code, message, file: file, offset: offset.map(UInt64.init), underlying: cause)
  }
}
