public import ArgumentParser
import Foundation
import Larder
import LarderSync
import WeatherSpotsKit

/// Exit codes of the program, which follow sysexits.h where a code fits.
public enum Outcome: Int32, Sendable {
  /// A failure without an exit code of its own.
  case other = 1
  /// No such spot, or no store yet.
  case notFound = 2
  /// The name fits several spots.
  case ambiguous = 3
  /// The forecast shown is the last known one and no longer fresh.
  case stale = 4
  /// The disk is full.
  case diskFull = 28
  /// The command line could not be parsed.
  case usage = 64
  /// The input has bad rows.
  case badRows = 65
  /// The input cannot be read.
  case noInput = 66
  /// There is no forecast or photo, or no sync.
  case noForecast = 69
  /// The output cannot be written.
  case noOutput = 73
  /// The store cannot be read or written.
  case storeInputOutput = 74
  /// Another process uses the store.
  case storeLocked = 75
  /// The store is damaged, incomplete, from a newer version or not a store of this program.
  case storeRefused = 76
  /// The permissions forbid opening the store, or a server rejects the token.
  case noPermission = 77
  /// The configuration file or an environment variable is invalid.
  case configuration = 78
}

/// Failure with a message for a person and an exit code for a script.
public struct Failure: Error {
  let outcome: Outcome
  let message: String

  /// Creates a failure.
  ///
  /// - Parameters:
  ///   - outcome: The exit code.
  ///   - message: One sentence for a person, without the full stop.
  public init(_ outcome: Outcome, _ message: String) {
    self.outcome = outcome
    self.message = message
  }

  init(_ error: any Error) {
    switch error {
    case let failure as Failure: self = failure
    case let error as RepositoryError: self.init(error)
    case let problem as SyncProblem: self.init(problem)
    // Before the general case, so that the message names the command that sets a target.
    case SyncTargetProblem.none: self.init(.usage, "\(SyncTargetProblem.none): `weather-spots sync URL`")
    case let problem as SyncTargetProblem: self.init(.usage, "\(problem)")
    case let problem as SpotProblem: self.init(.usage, "\(problem)")
    case let problem as SkippedDay: self.init(.usage, "\(problem)")
    case ProviderError.misconfigured(let what): self.init(.usage, what)
    case let error as ProviderError: self.init(.noForecast, "no forecast: \(error), and none is stored")
    case ImageError.invalidURL: self.init(.usage, "\(ImageError.invalidURL)")
    case let error as ImageError: self.init(.noForecast, "no photo: \(error)")
    default: self.init(.other, String(describing: error))
    }
  }

  /// Creates the failure of a request that got no answer and has no stored one to show.
  init(lacking what: String, _ problem: WeatherProblem, nothing: String) {
    // With cache-only no request was sent, so the service must not be blamed.
    let reason = problem == .notStored ? "\(nothing), and --policy cache-only sends no request" : "\(problem), and \(nothing)"
    self.init(.noForecast, "no \(what): \(reason)")
  }

  private init(_ problem: SyncProblem) {
    switch problem {
    case .unauthorized: self.init(.noPermission, "the server does not take the token; `weather-spots config set sync-token TOKEN` sets it")
    case .forbidden: self.init(.noPermission, "the server does not let this token use the scope; what is unsent is kept")
    case .upgradeRequired: self.init(.other, "the server wants a newer version of this program; what is unsent is kept")
    // A captive portal or a wrong path answers with HTML or 404.
    case .malformed, .refused(404, _):
      self.init(.noForecast, "no sync: what answers there is no larder-server, or something is between; what is unsent is kept")
    case .unreachable(let why): self.init(.noForecast, "no sync: the server cannot be reached: \(why); what is unsent is kept")
    case .unavailable: self.init(.noForecast, "no sync: the server cannot answer now; what is unsent is kept")
    case .tooManyRequests: self.init(.noForecast, "no sync: the server is asked too often; what is unsent is kept")
    default: self.init(.noForecast, "no sync: \(problem) What is unsent is kept.")
    }
  }

  private init(_ error: RepositoryError) {
    let place = error.file.map { $0 + (error.offset.map { " at byte \($0)" } ?? "") } ?? "the store"
    let why = error.message.isEmpty ? "" : ": \(error.message)"
    switch error.code {
    case .locked, .alreadyOpen: self.init(.storeLocked, "the store is in use by another process")
    case .corrupted: self.init(.storeRefused, "\(place) is damaged and was left as it is\(why)")
    case .newerSchema: self.init(.storeRefused, "\(place) was written by a newer version and was left as it is\(why)")
    case .notOurStore: self.init(.storeRefused, "\(place) is not a store of this program and was left as it is\(why)")
    // Without a file the error is about a query, which the default case reports.
    case .unsupported where error.file != nil:
      self.init(.storeRefused, "\(place) cannot be opened as a store and was left as it is\(why)")
    case .dataMissing: self.init(.storeRefused, "a part of the store is missing; the rest was left as it is: \(place)\(why)")
    case .protectedDataUnavailable: self.init(.noPermission, "\(place) may not be opened\(why)")
    case .full: self.init(.diskFull, "the disk is full; what had no room was not stored: \(place)")
    // The commit failed after its bytes may have reached the disk.
    case .outcomeUnknown, .poisoned:
      self.init(.storeInputOutput, "the last change may or may not be stored; check it: \(place)\(why)")
    case .inputOutput: self.init(.storeInputOutput, "\(place) cannot be read or written\(why)")
    default: self.init(.other, "\(place): \(error.code)\(why)")
    }
  }
}

extension Error {
  /// Message of the operating system for a failed call, or else the description of the error.
  var reason: String {
    if let error = self as? RepositoryError { return error.message }
    let error = self as NSError
    // Foundation wraps the error of the system call, whose text names the cause more exactly.
    let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
    return cause.domain == NSPOSIXErrorDomain ? String(cString: strerror(Int32(cause.code))) : error.localizedDescription
  }
}

extension POSIXError {
  /// Error of the last failed system call, read from `errno`.
  static var last: POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
}

/// Command that reports a failure as one line on standard error and as the exit code.
public protocol ReportingCommand: AsyncParsableCommand {
  /// Does the work of the command.
  func execute() async throws
}

extension ReportingCommand {
  /// Checks the settings, runs `execute()` and reports its failure.
  public func run() async throws {
    do {
      // The defaults of options ignore an invalid configuration, so it is reported here.
      _ = try Settings.load()
      try await execute()
      // An `ExitCode` is rethrown as it is, because its command has already written the message.
    } catch let code as ExitCode { throw code } catch {
      let failure = Failure(error)
      note(failure.message)
      throw ExitCode(failure.outcome.rawValue)
    }
  }
}
