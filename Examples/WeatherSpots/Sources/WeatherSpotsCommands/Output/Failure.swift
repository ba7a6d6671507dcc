public import ArgumentParser
import Foundation
import Larder
import LarderSync
import WeatherSpotsKit

/// The documented ends of the program; the numbers are those of sysexits.h where one fits.
public enum Outcome: Int32, Sendable {
  /// A failure not listed here.
  case other = 1
  /// No such spot, or no store yet.
  case notFound = 2
  /// The name fits several spots.
  case ambiguous = 3
  /// The forecast shown is only the last known one.
  case stale = 4
  /// The disk is full.
  case diskFull = 28
  /// The command was not understood.
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
  /// The store is damaged, foreign, newer or incomplete.
  case storeRefused = 76
  /// The store may not be opened, or a server does not take the token.
  case noPermission = 77
  /// The configuration is not understood.
  case configuration = 78
}

/// A failure in words for a person, and the exit code for a script.
public struct Failure: Error {
  let outcome: Outcome
  let message: String

  /// Makes a failure.
  ///
  /// - Parameters:
  ///   - outcome: The exit code.
  ///   - message: One sentence without its point, for a person.
  public init(_ outcome: Outcome, _ message: String) {
    self.outcome = outcome
    self.message = message
  }

  init(_ error: any Error) {
    switch error {
    case let failure as Failure: self = failure
    case let error as RepositoryError: self.init(error)
    case let problem as SyncProblem: self.init(problem)
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

  /// Makes the failure of a request that has no answer and nothing stored to show instead.
  init(lacking what: String, _ problem: WeatherProblem, nothing: String) {
    let reason = problem == .notStored ? "\(nothing), and --policy cache-only sends no request" : "\(problem), and \(nothing)"
    self.init(.noForecast, "no \(what): \(reason)")
  }

  private init(_ problem: SyncProblem) {
    switch problem {
    case .unauthorized: self.init(.noPermission, "the server does not take the token; `weather-spots config set sync-token TOKEN` sets it")
    case .forbidden: self.init(.noPermission, "the server does not let this token use the scope; what is unsent is kept")
    case .upgradeRequired: self.init(.other, "the server wants a newer version of this program; what is unsent is kept")
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
    case .unsupported where error.file != nil:
      self.init(.storeRefused, "\(place) cannot be opened as a store and was left as it is\(why)")
    case .dataMissing: self.init(.storeRefused, "a part of the store is missing; the rest was left as it is: \(place)\(why)")
    case .protectedDataUnavailable: self.init(.noPermission, "\(place) may not be opened\(why)")
    case .full: self.init(.diskFull, "the disk is full; what had no room was not stored: \(place)")
    case .outcomeUnknown, .poisoned:
      self.init(.storeInputOutput, "the last change may or may not be stored; check it: \(place)\(why)")
    case .inputOutput: self.init(.storeInputOutput, "\(place) cannot be read or written\(why)")
    default: self.init(.other, "\(place): \(error.code)\(why)")
    }
  }
}

extension Error {
  /// The words of the operating system for a call that failed, or else those of the error.
  var reason: String {
    if let error = self as? RepositoryError { return error.message }
    let error = self as NSError
    let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
    return cause.domain == NSPOSIXErrorDomain ? String(cString: strerror(Int32(cause.code))) : error.localizedDescription
  }
}

extension POSIXError {
  /// The error of the call before.
  static var last: POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
}

/// A command whose failure is written to standard error on one line and becomes the exit code.
public protocol ReportingCommand: AsyncParsableCommand {
  /// Does the command's work.
  func execute() async throws
}

extension ReportingCommand {
  /// Checks the settings, and does the command's work.
  public func run() async throws {
    do {
      _ = try Settings.load()
      try await execute()
    } catch let code as ExitCode { throw code } catch {
      let failure = Failure(error)
      note(failure.message)
      throw ExitCode(failure.outcome.rawValue)
    }
  }
}
