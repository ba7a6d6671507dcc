public import Foundation

/// An error of a store, as one value that you can match, show and log.
///
/// Match an error by its ``code``. A `catch` clause can take a code as its pattern:
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
/// End a `do` statement with a `catch` that takes every other error. The compiler of Swift 6.3.1 crashes on a `do` that leaves typed errors
/// uncaught, if the same function uses `??` before that `do`.
///
/// A missing record is never an error: ``LocalRepository/find(by:)`` returns `nil`. An error never looks like a missing record: if the
/// storage cannot be read, the call throws.
///
/// The description of an error names codes, files, offsets and hashes of keys, never the contents of a record. The wording of a description
/// may change, so match errors by their codes.
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
  /// Kind of the error, which programs match on.
  public let code: Code
  /// Description of the error for a person, which never holds the contents of a record.
  public let message: String
  /// Path of the file in which the error occurred, or `nil` if the error concerns no file.
  public let file: String?
  /// Byte offset in ``file`` at which the problem begins, or `nil` if the offset is not known.
  public let offset: UInt64?
  /// Hash of the key of the record that the error concerns (see ``RecordKey/hash``), or `nil` if it concerns no single record.
  public let keyHash: String?
  /// Version that was found and newest version that is supported, if the code is ``Code/newerSchema``.
  public let versions: Versions?
  /// Error that has caused this error, such as a failed system call, or `nil`.
  ///
  /// The underlying error may hold record contents (an `EncodingError` prints its whole value), so check it before you log it.
  public let underlying: (any Error)?

  /// A version that was found in a file or record, and the newest version that this program can read.
  public struct Versions: Hashable, Sendable {
    /// Version that the file or record has.
    public let found: Int
    /// Newest version that this program can read.
    public let supported: Int

    /// Makes the pair of the found and the supported version.
    public init(found: Int, supported: Int) {
      self.found = found
      self.supported = supported
    }
  }

  /// Makes an error of a store.
  ///
  /// Use this initialiser of `RepositoryError` in a backend outside this package. The message is read by a person and must not hold the
  /// contents of a record.
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
  /// The kinds of errors that a store throws.
  ///
  /// A later version of Larder may add codes, so a `switch` over codes needs a `default`.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    // The names of error codes are printed and are stored in statistics, so no name may change.
    private enum Name: String {
      case corrupted, newerSchema, notOurStore, dataMissing, protectedDataUnavailable, locked, alreadyOpen, migrationFailed
      case encodingFailed, decodingFailed, invalidKey, tooLarge, inputOutput, full, outcomeUnknown, poisoned, closed, cancelled, suspended
      case notFound, alreadyExists, revisionMismatch, uniqueViolation, unsupported, superseded
    }
    private let name: Name

    /// Stored data is damaged.
    ///
    /// The damaged file is left as it was found.
    public static let corrupted = Code(name: .corrupted)
    /// A newer version of Larder or of the app has written the file or record.
    ///
    /// A file or record of a newer version is left as it was found.
    public static let newerSchema = Code(name: .newerSchema)
    /// The file belongs to another program.
    ///
    /// A file of another program is left as it was found.
    public static let notOurStore = Code(name: .notOurStore)
    /// Files of the store that must exist are missing.
    ///
    /// The remaining files of the store are not changed.
    public static let dataMissing = Code(name: .dataMissing)
    /// The system refuses access to a file: by its permissions, or because the device was not unlocked yet.
    ///
    /// The code `.protectedDataUnavailable` never means that the store is empty.
    public static let protectedDataUnavailable = Code(name: .protectedDataUnavailable)
    /// Another process has the store open.
    public static let locked = Code(name: .locked)
    /// The calling process already has the store open.
    public static let alreadyOpen = Code(name: .alreadyOpen)
    /// A step of a schema migration has failed.
    public static let migrationFailed = Code(name: .migrationFailed)
    /// The value could not be encoded as JSON, and nothing was written.
    public static let encodingFailed = Code(name: .encodingFailed)
    /// The stored bytes of a record are whole but do not decode as the record's type.
    ///
    /// The store keeps the bytes that do not decode.
    public static let decodingFailed = Code(name: .decodingFailed)
    /// The id cannot be the key of a record: it does not encode, does not round-trip, or is too long.
    public static let invalidKey = Code(name: .invalidKey)
    /// A record is over a limit of ``StoreOptions/Limits``.
    public static let tooLarge = Code(name: .tooLarge)
    /// The system reported a failure of reading or writing.
    ///
    /// A call that throws `.inputOutput` has changed nothing.
    public static let inputOutput = Code(name: .inputOutput)
    /// There is no space left on the disk.
    ///
    /// A call that throws `.full` has changed nothing.
    public static let full = Code(name: .full)
    /// A sync failed after bytes were written to a file, so the write may be stored or lost.
    ///
    /// Open the store again to find out whether the write is stored.
    public static let outcomeUnknown = Code(name: .outcomeUnknown)
    /// An earlier sync failed, so the store refuses writes until you open it again.
    public static let poisoned = Code(name: .poisoned)
    /// The store was closed.
    public static let closed = Code(name: .closed)
    /// The task was cancelled before the commit point, so the call has changed nothing.
    public static let cancelled = Code(name: .cancelled)
    /// The store is suspended, and the call needs its files or has waited for ``StoreOptions/suspensionTimeout``.
    ///
    /// A call that throws `.suspended` has changed nothing. After a `.suspended` error, call ``Store/resume()``, and try again.
    public static let suspended = Code(name: .suspended)
    /// The store has no record with the given id.
    public static let notFound = Code(name: .notFound)
    /// The store already has a record with the given id.
    public static let alreadyExists = Code(name: .alreadyExists)
    /// The record is not at the revision that the caller named.
    public static let revisionMismatch = Code(name: .revisionMismatch)
    /// A unique index already holds the value in another record.
    public static let uniqueViolation = Code(name: .uniqueViolation)
    /// The store, its backend or its options do not support the call.
    ///
    /// The message of an `.unsupported` error gives the reason.
    public static let unsupported = Code(name: .unsupported)
    /// The records of a store on disk can no longer be read as of the commit that the call needs.
    ///
    /// Take a new snapshot. After a `.superseded` of `resume()`, close the store and open it again. No read returns a record of another
    /// commit instead.
    public static let superseded = Code(name: .superseded)

    /// Name of the error code, such as "corrupted".
    public var description: String { name.rawValue }

    /// Makes the error code with the given name, or `nil` for a name that this version of Larder does not have.
    init?(named name: String) {
      guard let name = Name(rawValue: name) else { return nil }
      self.name = name
    }

    private init(name: Name) { self.name = name }
  }
}

extension RepositoryError: CustomStringConvertible {
  /// The code, message, versions, file, offset and key hash of the error as text, and the kind of the underlying error.
  ///
  /// The description of an error never contains the contents of a record.
  public var description: String {
    var text = code.description
    if !message.isEmpty { text += ": \(message)" }
    if let versions { text += " (found \(versions.found), supported \(versions.supported))" }
    if let file { text += " [\(file)" + (offset.map { " at byte \($0)" } ?? "") + "]" }
    if let keyHash { text += " [key #\(keyHash)]" }
    // Only the kind of the underlying error is printed, because its own text may hold the contents of a record.
    if let underlying { text += " (\(Self.nameOfKind(underlying)))" }
    return text
  }

  /// Returns the name of an error's kind, without the data that the error holds.
  ///
  /// The text of an `EncodingError` would contain the whole value, and the text of a `DecodingError` would contain parts of the value.
  private static func nameOfKind(_ error: any Error) -> String {
    switch error {
    case let error as RepositoryError: error.description
    case let error as SystemCallError: error.description
    case EncodingError.invalidValue: "EncodingError.invalidValue"
    case DecodingError.dataCorrupted: "DecodingError.dataCorrupted"
    case DecodingError.keyNotFound: "DecodingError.keyNotFound"
    case DecodingError.typeMismatch: "DecodingError.typeMismatch"
    case DecodingError.valueNotFound: "DecodingError.valueNotFound"
    // The text of an unknown error may contain stored values, but the name of the error's type does not.
    default: String(describing: type(of: error))
    }
  }
}

extension RepositoryError: LocalizedError {
  /// The same text as ``description``, which `localizedDescription` returns too.
  public var errorDescription: String? { description }
}

/// Returns true if an error has a code, so that a `catch` clause can take the code as its pattern.
public func ~= (code: RepositoryError.Code, error: any Error) -> Bool {
  (error as? RepositoryError)?.code == code
}

/// A system call that failed, with its name and the value of `errno`.
public struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Name of the system call, such as "fdatasync".
  public let call: String
  /// Value of `errno` after the failed system call.
  public let errorNumber: Int32

  /// Makes an error for a failed system call.
  public init(call: String, errorNumber: Int32) {
    self.call = call
    self.errorNumber = errorNumber
  }

  /// Name of the system call and the system's description of the error.
  public var description: String { "\(call): \(String(cString: strerror(errorNumber)))" }
}

extension SystemCallError: LocalizedError {
  /// The same text as ``description``, which `localizedDescription` of a failed system call returns too.
  public var errorDescription: String? { description }
}

extension RepositoryError {
  /// Whether the failed system call was `open`, which cannot have changed the file.
  var isOfOpening: Bool { (underlying as? SystemCallError)?.call == "open" }

  /// Returns the error for a system call that failed on a file.
  static func system(_ call: String, _ errorNumber: Int32, file: String, offset: Int? = nil) -> RepositoryError {
    let code: Code =
      switch errorNumber {
      // A reached quota (EDQUOT) and a file at its size limit (EFBIG) prevent writes as a full disk does.
      case ENOSPC, EDQUOT, EFBIG: .full
      // Data protection refuses access before the first unlock of the device. Before the first unlock the data exists, so the error code
      // must not be `.dataMissing`.
      case EACCES, EPERM: .protectedDataUnavailable
      // Files are opened with `O_NOFOLLOW`, so `ELOOP` means that a symbolic link is in the place of the file.
      case ELOOP: .unsupported
      default: .inputOutput
      }
    let cause = SystemCallError(call: call, errorNumber: errorNumber)
    // The system describes `ELOOP` as too many levels of links, which would mislead, because Larder gets `ELOOP` for a single link.
    let message = errorNumber == ELOOP ? "symbolic links are not followed" : "the system refused \(cause) (errno \(errorNumber))"
    return RepositoryError(code, message, file: file, offset: offset.map(UInt64.init), underlying: cause)
  }
}
