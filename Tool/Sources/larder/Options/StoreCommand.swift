internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// Command that throws errors of a store and returns an exit code.
protocol StoreCommand: AsyncParsableCommand {
  /// Console for the command's output and errors.
  var console: Console { get }

  /// Runs the command, and returns its exit code.
  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus
}

/// Command with the common options of the output.
protocol OutputCommand: StoreCommand {
  /// Common options of the output.
  var output: OutputOptions { get }
}

extension OutputCommand {
  /// Console with the form that the options select.
  var console: Console { output.console }
}

extension StoreCommand {
  /// Runs the command, writes an error to the standard error, and ends with the exit code.
  func run() async throws {
    let console = console
    var status: ExitStatus
    do throws(RepositoryError) {
      status = try await perform(console)
      // Part of the work: output that is lost must change the exit code.
      try console.flush()
    } catch {
      console.report(error)
      // A command that has changed files must not report that it was refused, even if only the output failed.
      status = console.hasChanged ? .incomplete : error.code == .notFound ? .negative : .refused
    }
    // Only an `ExitCode` ends the program without a message of the parser. The error was written above.
    if status != .success { throw ExitCode(status.rawValue) }
  }
}
