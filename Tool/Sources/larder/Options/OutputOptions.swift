internal import ArgumentParser
internal import LarderToolKit

/// Options of the output, which every command but `dump` has.
struct OutputOptions: ParsableArguments {
  @Flag(name: .long, help: "Write stable JSON for programs.")
  var json = false

  /// Console with the form that the options select.
  var console: Console { Console(format: json ? .json : .text) }
}
