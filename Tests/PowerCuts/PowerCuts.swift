// Cuts the power of a disk under a file system, while a process writes to it, and looks what is left: Scripts/Torture/power-cuts.sh.

import Foundation
import LarderTesting

@main struct PowerCuts {
  /// Cuts, or is the process that writes: `PowerCuts cut ROW CUTS SEED DIRECTORY TEMPLATE KEPT` or `PowerCuts write ROW DIRECTORY SEED`;
  /// `PowerCuts rows` names the rows.
  static func main() async {
    signal(SIGPIPE, SIG_IGN)
    let arguments = CommandLine.arguments
    do {
      switch (arguments.dropFirst().first, arguments.count) {
      case ("rows", 2): Writer.say(Row.allCases.map(\.rawValue).joined(separator: "\n"))
      case ("write", 5):
        try await Writer.run(try row(arguments[2]), URL(fileURLWithPath: arguments[3]), seed: try number(arguments[4]))
      case ("cut", 8):
        let isSound = try await cut(
          try row(arguments[2]), cuts: Int(try number(arguments[3])), seed: try number(arguments[4]),
          arguments[5...].map(URL.init(fileURLWithPath:)))
        exit(isSound ? 0 : 1)
      default: throw Failure("expected rows, write or cut, found \(arguments.dropFirst())")
      }
    } catch {
      Writer.say("failed \(arguments.dropFirst().prefix(2).joined(separator: " ")): \(error)")
      exit(2)
    }
  }

  /// Makes the cuts of a row, in sessions of fifty; returns whether it keeps what it promises.
  private static func cut(_ row: Row, cuts: Int, seed: UInt64, _ places: [URL]) async throws -> Bool {
    let template = try Data(contentsOf: places[1])
    var random = SeededGenerator(seed: seed)
    var figures = Figures()
    while figures.cuts < cuts {
      let commit = [1, 5, 1000][figures.cuts / 50 % 3]
      let session = Session(
        row: row, seed: random.next(), commit: commit, cuts: min(50, cuts - figures.cuts), template: template, directory: places[0],
        kept: places[2])
      try await session.run(&figures)
    }
    Writer.say(figures.line(of: row))
    return !row.isLarder || figures.lost + figures.torn == 0
  }

  private static func row(_ name: String) throws -> Row {
    guard let row = Row(rawValue: name) else { throw Failure("expected a row, found \(name)") }
    return row
  }

  private static func number(_ text: String) throws -> UInt64 {
    guard let number = UInt64(text) else { throw Failure("expected a number, found \(text)") }
    return number
  }
}
