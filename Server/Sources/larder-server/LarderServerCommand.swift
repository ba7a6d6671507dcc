internal import ArgumentParser
internal import Foundation
internal import LarderServer

// The command reads arguments, calls the library, and prints. Invariant: what a program reads goes to stdout, everything else to stderr.

/// The command.
@main
struct LarderServerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larder-server", abstract: "Serves sync to the devices of apps that use Larder.",
    discussion: "Exit codes: 0 done, 1 a failure or a finding of doctor, 64 wrong arguments.",
    subcommands: [Serve.self, BackUp.self, Restore.self, Token.self, Devices.self, Scopes.self, Purge.self, Doctor.self])
}

/// Prints a failure in one line, and ends with 1.
func fail(_ error: any Error) -> ExitCode {
  FileHandle.standardError.write(Data("larder-server: \(error)\n".utf8))
  return .failure
}
