import ArgumentParser
import Foundation
import StandInServer

@main
struct WeatherSpotsServer: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "weather-spots-server",
    abstract: "A stand-in for Open-Meteo on this machine, for tests and demonstrations.",
    discussion: """
      Answers /v1/forecast and /v1/marine on 127.0.0.1 in Open-Meteo's wire format, from responses that others recorded and that are \
      dated anew for any place and day. The weather shown is not the weather. Every answer says so in the header X-Weather-Recorded, and \
      weather-spots shows it.

      The first line of standard output is the URL to give to `weather-spots forecast --api`. The server runs until it is killed.
      """)

  @Option(help: "The port; 0 takes a free one.")
  var port: UInt16 = 0

  @Option(help: ArgumentHelp("Answer with an error status.", valueName: "code"))
  var status: Int?

  @Flag(help: "Answer with a page of HTML, as a proxy would.")
  var html = false

  @Flag(help: "Cut every answer off in its middle.")
  var truncate = false

  @Option(help: ArgumentHelp("Wait before each answer.", valueName: "seconds"))
  var delay: Double?

  @Option(help: ArgumentHelp("Fail on one path only: forecast or marine.", valueName: "path"))
  var failOnly: String?

  func validate() throws {
    // The server has a single kind of failure: with two options, one would be ignored silently.
    guard [status != nil, html, truncate, delay != nil].count(where: { $0 }) <= 1 else {
      throw ValidationError("Give at most one of --status, --html, --truncate and --delay.")
    }
    // A status below 400 is no failure, and above 599 no status of HTTP.
    guard status.map({ (400...599).contains($0) }) ?? true else { throw ValidationError("--status takes 400 to 599.") }
    guard failOnly.map({ ["forecast", "marine"].contains($0) }) ?? true else {
      throw ValidationError("--fail-only takes forecast or marine.")
    }
  }

  func run() async throws {
    let server = try StandInServer(port: port, failure: kind.map { Failure($0, path: failOnly) })
    // The URL is written only after the socket listens, so that a script may send its first request at once.
    let url = try await server.start()
    // Written unbuffered, since a script reads the URL through a pipe while the server runs on.
    try FileHandle.standardOutput.write(contentsOf: Data("\(url.absoluteString)\n".utf8))
    try await server.wait()
  }

  private var kind: Failure.Kind? {
    if let status { return .status(status) }
    if let delay { return .delay(.seconds(delay)) }
    return html ? .html : truncate ? .truncated : nil
  }
}
