internal import ArgumentParser
internal import LarderToolKit

/// The options of output that every command has.
struct OutputOptions: ParsableArguments {
  @Flag(name: .long, help: "Write stable JSON for programs.")
  var json = false

  /// The place that the command writes to.
  var console: Console { Console(format: json ? .json : .text) }
}
