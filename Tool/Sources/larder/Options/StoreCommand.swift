internal import ArgumentParser
internal import Larder
internal import LarderToolKit

/// A command whose failures are errors of the store, and whose answer is an exit code.
protocol StoreCommand: AsyncParsableCommand {
  /// The place that the command writes to.
  var console: Console { get }

  /// Does the work, and returns the answer.
  func perform(_ console: Console) async throws(RepositoryError) -> ExitStatus
}

/// A command with the usual options of output.
protocol OutputCommand: StoreCommand {
  /// The options of output.
  var output: OutputOptions { get }
}

extension OutputCommand {
  /// The place that the options name.
  var console: Console { output.console }
}

extension StoreCommand {
  /// Does the work, writes a failure to the standard error, and ends with the exit code.
  func run() async throws {
    let console = console
    var status: ExitStatus
    do throws(RepositoryError) {
      status = try await perform(console)
      try console.flush()
    } catch {
      console.report(error)
      status = console.hasChanged ? .incomplete : error.code == .notFound ? .negative : .refused
    }
    if status != .success { throw ExitCode(status.rawValue) }
  }
}
