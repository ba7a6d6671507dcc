import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct AlertsWatch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Asks for warnings on a schedule, and tells of each revision of each once.",
    discussion: """
      Without names all spots are watched. News go to standard output, or to where --file and --webhook say, which is remembered: a \
      warning is told once for each spot, revision and destination, in this run and in all later ones. A line of a file is there exactly once. \
      A webhook is sent each notice until it answers 2xx, at least once, always with the same Idempotency-Key, by which it can tell a repeat; \
      a line of standard output comes again, with a mark, if the program was killed right after writing it.

      One process at a time watches a store (exit code 75). With --once it does what is due and ends: 69 if warnings are not known somewhere, \
      73 if a notice was not taken and waits in the queue. A cluster is asked for once in the time of --every, however often this runs. Without \
      --once it goes on until Ctrl-C. Only WeatherKit has warnings; --provider recorded makes some up, for trying this out.
      """)

  @Argument(help: "The names or ids of spots. (default: all)")
  var names: [String] = []

  @Flag(help: "Do what is due now, and end.")
  var once = false

  @Option(help: ArgumentHelp("How often a cluster is asked for.", valueName: "minutes"))
  var every = 5.0

  @Option(help: ArgumentHelp("Append notices to this file, one JSON object a line.", valueName: "file"))
  var file: String?

  @Option(help: ArgumentHelp("Post notices as JSON to this URL.", valueName: "url"))
  var webhook: String?

  @Option(help: ArgumentHelp("How many questions are asked in a day (UTC) at most, over all runs.", valueName: "count"))
  var callsPerDay = 10_000

  @OptionGroup var options: ProviderOptions
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard (1...1440).contains(every) else { throw ValidationError("--every takes 1 to 1440 minutes.") }
    guard callsPerDay > 0 else { throw ValidationError("--calls-per-day takes a number from 1.") }
    guard options.policy == .cacheFirst, !options.refresh else {
      throw ValidationError("Warnings are always asked for: leave --policy and --refresh out.")
    }
    _ = try webhookURL()
  }

  func run() async throws {
    try await reportingFailures {
      let ending = once ? nil : TerminationSignals()
      let store = try globals.file(creating: false)
      // A mistake is told before the store is opened.
      _ = try source(nil)
      let lock = try AlertLock(beside: store)
      defer { lock.release() }
      try await globals.withStore { storage in
        let pipeline = AlertPipeline(
          try await watchers(storage), queue: try await AlertQueue(storage.store),
          source: try source(try await HostStates(storage, clock: options.clock)), sinks: try sinks(),
          schedule: .init(every: .seconds(every * 60), callsPerDay: callsPerDay), clock: options.clock)
        guard let ending else { return try tell(try await pipeline.round(), isLast: true) }
        let places = pipeline.clusters.reduce(0) { $0 + $1.watchers.count }
        note("watching \(counted(places, "place")) in \(counted(pipeline.clusters.count, "cluster")); Ctrl-C ends it")
        try await ending.run {
          while true {
            try tell(try await pipeline.round(), isLast: false)
            try await options.clock.sleep(for: try await pipeline.timeUntilNextRound())
          }
        }
      }
    }
  }

  /// Returns the spots that are meant, for each place that notices go to.
  private func watchers(_ storage: SpotStore) async throws -> [Watcher] {
    var spots: [String: Spot] = [:]
    if names.isEmpty {
      for spot in try await storage.allSpots() { spots[spot.id] = spot }
    } else {
      for name in names {
        let spot = try await storage.spot(named: name)
        spots[spot.id] = spot
      }
    }
    let sinks = try sinks()
    return sinks.flatMap { sink in spots.values.map { Watcher($0, sink: sink.name) } }
  }

  private func sinks() throws -> [any AlertSink] {
    var sinks: [any AlertSink] = []
    if let file { sinks.append(FileSink(URL(filePath: file))) }
    if let url = try webhookURL() { sinks.append(WebhookSink(url, timeout: .milliseconds(Int(options.timeout * 1000)))) }
    return sinks.isEmpty
      ? [
        LineSink(isJSON: globals.json) { [json = globals.json] in
          try json ? writeBytes($0) : writeText(String(decoding: $0, as: UTF8.self))
        }
      ] : sinks
  }

  private func source(_ hosts: HostStates?) throws -> any AlertSource {
    if options.provider == .recorded { return ExerciseAlerts(clock: options.clock) }
    let provider = try options.makeProvider(hosts)
    guard provider.service(of: .alerts) != nil else {
      throw Failure(.usage, "\(provider.name) has no warnings; ask --provider weatherkit, or recorded to try it out")
    }
    return try ProviderAlerts(provider, limits: .weatherKit(clock: options.clock), clock: options.clock)
  }

  private func webhookURL() throws -> URL? {
    guard let webhook else { return nil }
    guard let url = URL(string: webhook), ["http", "https"].contains(url.scheme), url.host() != nil else {
      throw ValidationError("--webhook takes a URL such as https://example.org/alerts.")
    }
    return url
  }

  private func tell(_ report: RoundReport, isLast: Bool) throws {
    let isSilent = report.calls + report.delivered + report.failedDeliveries + report.lapsed + report.postponed == 0
    if isLast || !isSilent { note(report.text) }
    for problem in report.problems.sorted() { note(problem) }
    guard isLast else { return }
    if report.failedCalls + report.postponed > 0 { throw ExitCode(Outcome.noForecast.rawValue) }
    if report.failedDeliveries > 0 { throw ExitCode(Outcome.noOutput.rawValue) }
  }
}

extension RoundReport {
  /// A summary of the round, on one line.
  fileprivate var text: String {
    let asked = "asked \(counted(calls, "time")) for \(counted(watchers, "place")) in \(counted(clusters, "cluster"))"
    var parts = [asked, counted(queued, "new notice"), "\(delivered) handed over"]
    if failedCalls > 0 { parts.append("\(counted(failedCalls, "cluster")) without an answer") }
    if postponed > 0 { parts.append("\(counted(postponed, "cluster")) left for later by the quota") }
    if notOffered > 0 { parts.append("\(counted(notOffered, "cluster")) for which there are no warnings") }
    if failedDeliveries > 0 { parts.append("\(failedDeliveries) not taken") }
    if lapsed > 0 { parts.append("\(lapsed) lapsed") }
    if waiting > 0 { parts.append("\(waiting) in the queue") }
    return parts.joined(separator: ", ")
  }
}
