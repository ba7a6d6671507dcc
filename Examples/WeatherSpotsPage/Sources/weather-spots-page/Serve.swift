import ArgumentParser
import Foundation
import Larder
import Logging
import ServiceLifecycle
import UnixSignals
import WeatherSpotsCommands
import WeatherSpotsKit
import WeatherSpotsWeb

struct Serve: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows the spots and their weather in a browser.",
    discussion: """
      Writes the address of the page and answers until Ctrl-C. The page shows a map, a list and the weather of each spot; what other commands \
      change in the store appears by itself. What was seen once is shown without the server, too, and what is changed then is sent later.

      Only this machine can ask, unless --host gives another address: then requests need a token, which is in the address that is written, \
      and is another one each time. There is no encryption: such an address is for a network that you trust, or for a proxy with TLS. \
      The store is a SQLite one, so that other commands can use it at the same time; a JSON store works, and is kept by the server alone.

      /api answers what the other commands write with --json, /openapi.json describes it, and /metrics has numbers for Prometheus. \
      Example: weather-spots-page serve --port 8080
      """)

  @Option(help: ArgumentHelp("The address to listen at.", valueName: "address"))
  var host = "127.0.0.1"

  @Option(help: ArgumentHelp("The port to listen at; 0 for any.", valueName: "number"))
  var port = 8080

  @Option(help: ArgumentHelp("A further name by which browsers may ask, with --host; may be given several times.", valueName: "name"))
  var allowHost: [String] = []

  @Option(help: ArgumentHelp("The number of open pages that are told of changes; one more asks again later.", valueName: "count"))
  var maxStreams = WebOptions().streams

  @OptionGroup var options: ProviderOptions
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard (0...65_535).contains(port) else { throw ValidationError("--port takes 0 to 65535.") }
    // The page reads without waiting first, which `--refresh` and policies that always fetch would contradict.
    guard !options.refresh, [.cacheFirst, .staleWhileRevalidate, .cacheOnly].contains(options.policy) else {
      throw ValidationError("The page shows what is stored and then what is newer; --policy takes cache-only, and there is no --refresh.")
    }
    guard maxStreams > 0 else { throw ValidationError("--max-streams takes a number from 1.") }
    guard !host.isEmpty else { throw ValidationError("--host takes an address such as 0.0.0.0.") }
  }

  func execute() async throws {
    let directory = try globals.imageDirectory()
    try await globals.withStore(creating: true, following: .milliseconds(50)) { storage in
      try await options.withWeather(storage, gathers: true) { weather in
        do {
          try await serve(storage, weather, PhotoFiles(directory: directory))
        } catch let error where "\(error)".contains("errno: \(EADDRINUSE)") {
          // NIO has the number in the text of its error, and this target does not import NIO.
          throw Failure(.other, "the port \(port) is in use; choose another one with --port")
        }
      }
    }
  }

  private func serve(_ storage: SpotStore, _ weather: WeatherService, _ photos: PhotoFiles) async throws {
    var web = WebOptions()
    (web.host, web.port, web.names, web.streams) = (host, port, allowHost, maxStreams)
    // A new token for each run: an address from an old log or history opens nothing.
    web.token = WebOptions.isLoopback(host) ? nil : WebOptions.newToken()
    if options.policy == .cacheOnly { (web.policy, web.waitingPolicy) = (.cacheOnly, .cacheOnly) }
    let logger = Logger(label: "serve")
    // A browser cannot open the wildcard address, which stands for all addresses of this machine.
    let isAll = ["0.0.0.0", "::", "[::]"].contains(host)
    let address = isAll ? "localhost" : host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
    let query = web.token.map { "?token=\($0)" } ?? ""
    let isJSON = globals.json
    let server = WebServer(storage, weather, photos: photos, options: web, logger: logger) { port in
      // A script that starts the server reads the address from this line. If the output is closed, the server still serves.
      let url = "http://\(address):\(port)/\(query)"
      do {
        try isJSON ? writeJSON(["url": url]) : writeText("Open \(url)\(isAll ? ", or the same at another address of this machine" : "")\n")
      } catch { note("the output cannot be written") }
    }
    var configuration = ServiceGroupConfiguration(
      services: [server], gracefulShutdownSignals: [.sigterm, .sigint], logger: Logger(label: "serve") { _ in SwiftLogNoOpLogHandler() })
    // A client that reads slowly or not at all must not keep the process from ending.
    configuration.maximumGracefulShutdownDuration = .seconds(5)
    try await ServiceGroup(configuration: configuration).run()
  }
}
