import Foundation
import Subprocess
import Testing

/// The text of a command on a pipe, on a terminal, on a narrow one, without colors, and without Unicode.
@Suite(.timeLimit(.minutes(15))) struct AstronomyStyleTests {
  private let arguments = ["astronomy", "-33.93,18.42", "--zone", "Africa/Johannesburg", "--date", "2026-01-10"]
  private let title = "33.9300° S, 18.4200° E | 2026-01-10 (Africa/Johannesburg)"

  private func terminal(_ environment: [Environment.Key: String?] = [:], _ more: [String] = []) async throws -> String {
    try await onATerminal(arguments + more, environment, until: "Moon lowest            18:37")
  }

  @Test(arguments: [[:], ["NO_COLOR": ""]] as [[Environment.Key: String?]])
  func theTitleStandsOutOnATerminal(_ environment: [Environment.Key: String?]) async throws {
    #expect(try await terminal(environment).hasPrefix("\u{1B}[1m\(title)\u{1B}[0m\r\n  Sun "))
  }

  @Test(arguments: [["NO_COLOR": "1"], ["TERM": "dumb"]] as [[Environment.Key: String?]])
  func whoWantsNoColorsGetsNone(_ environment: [Environment.Key: String?]) async throws {
    #expect(try await terminal(environment).hasPrefix("\(title)\r\n  Sun "))
  }

  @Test func aPipeHasNoColors() async throws {
    let run = try await weatherSpots(arguments)
    #expect(run.code == 0)
    #expect(!run.output.contains("\u{1B}"))
  }

  @Test func plainTextIsASCII() async throws {
    let run = try await weatherSpots(arguments + ["--plain"])
    #expect(
      run.output.hasPrefix(
        "33.9300 deg S, 18.4200 deg E | 2026-01-10 (Africa/Johannesburg)\n  Sun                    rises and sets, up to 78.0 deg high\n"))
    let isASCII = run.output.allSatisfy { $0.isASCII }
    #expect(isASCII)
    #expect(try await terminal([:], ["--plain"]).hasPrefix("33.9300 deg S"))
  }

  @Test func linesAreAsWideAsTheTerminal() async throws {
    let run = try await weatherSpots(arguments, environment: ["COLUMNS": "40"])
    #expect(
      run
        == Run(
          output: """
            33.9300° S, 18.4200° E | 2026-01-10
            (Africa/Johannesburg)
              Sun                    rises and sets,
                                     up to 78.0°
                                     high
              Sunrise                05:46
              Sunset                 20:01
              Solar noon             12:54
              Civil twilight         from 05:18,
                                     until 20:30
              Nautical twilight      from 04:43,
                                     until 21:05
              Astronomical twilight  from 04:04,
                                     until 21:43
              Moon                   sets and stays
                                     down, third
                                     quarter, 52 %
                                     lit
              Moonrise               none
              Moonset                12:54
              Moon highest           06:17
              Moon lowest            18:37

            """))
  }
}
