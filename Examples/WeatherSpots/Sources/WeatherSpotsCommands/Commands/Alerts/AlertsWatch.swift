import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct AlertsWatch: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Fetches warnings on a schedule, and reports each revision of each once.",
    discussion: """
      Without names all spots are watched. Notices go to standard output, or to --file and --webhook, which is remembered: a \
      warning is reported once for each spot, revision and destination, in this run and in all later ones. A line of a file is there exactly once. \
      A webhook is sent each notice until it answers 2xx, at least once, always with the same Idempotency-Key, which identifies a repeat; \
      a line of standard output comes again, with a mark, if the program was killed right after writing it.

      One process at a time watches a store (exit code 75). With --once it makes one round and ends: 69 if a call failed, \
      73 if a sink refused a notice, which then waits in the queue. A cluster is fetched once in the time of --every, however often this runs. Without \
      --once it runs until Ctrl-C. Only WeatherKit has warnings; --provider recorded invents some, for a trial.
      """)

  @Argument(help: "The names or ids of spots. (default: all)")
  var names: [String] = []

  @Flag(help: "Make one round, and end.")
  var once = false

  @Option(help: ArgumentHelp("The interval between two calls for a cluster.", valueName: "minutes"))
  var every = 5.0

  @Option(help: ArgumentHelp("Append notices to this file, one JSON object a line.", valueName: "file"))
  var file: String?

  @Option(help: ArgumentHelp("Post notices as JSON to this URL.", valueName: "url"))
  var webhook: String?

  @Option(help: ArgumentHelp("The greatest number of calls in a day (UTC), over all runs.", valueName: "count"))
  var callsPerDay = 10_000

  @OptionGroup var options: ProviderOptions
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard (1...1440).contains(every) else { throw ValidationError("--every takes 1 to 1440 minutes.") }
    guard callsPerDay > 0 else { throw ValidationError("--calls-per-day takes a number from 1.") }
    // A cached warning may have been withdrawn meanwhile.
    guard options.policy == .cacheFirst, !options.refresh else {
      throw ValidationError("Warnings are always fetched; remove --policy and --refresh.")
    }
    _ = try webhookURL()
  }

  func execute() async throws {
    // Handlers first: Ctrl-C while the store opens must still close it.
    let ending = once ? nil : TerminationSignals()
    let store = try globals.file(creating: false)
    // A provider without warnings or a bad key is reported before the store is opened.
    _ = try source(nil)
    // Two watchers would deliver the same notices twice. The lock is not the store's: other commands may open that while a watcher runs.
    // Absolute, so that processes with different working directories contend for one file.
    let lock = try POSIXFileSystem().lock(store.absoluteURL.path + "-alerts.lock")
    defer { lock.release() }
    try await globals.withStore { storage in
      let pipeline = AlertPipeline(
        try await watchers(storage), queue: try await AlertQueue(storage.store),
        source: try source(try await Holds(storage, clock: options.clock)), sinks: try sinks(),
        schedule: .init(every: .seconds(every * 60), callsPerDay: callsPerDay), clock: options.clock)
      // A single round reports its failures by its exit code, and the endless watch by notes.
      guard let ending else { return try tell(try await pipeline.round(), isLast: true) }
      let places = pipeline.clusters.reduce(0) { $0 + $1.watchers.count }
      note("watching \(counted(places, "place")) in \(counted(pipeline.clusters.count, "cluster")); Ctrl-C ends it")
      try await ending.run {
        while true {
          try tell(try await pipeline.round(), isLast: false)
          // The pause ends early if a refused notice is due for another delivery.
          try await options.clock.sleep(for: try await pipeline.timeUntilNextRound())
        }
      }
    }
  }

  /// Returns one watcher for each pair of a spot and a sink.
  private func watchers(_ storage: SpotStore) async throws -> [Watcher] {
    var spots: [String: Spot] = [:]
    if names.isEmpty {
      for spot in try await storage.allSpots() { spots[spot.id] = spot }
    } else {
      for name in names {
        let spot = try await storage.spot(named: name)
        // Keyed by id, because a spot that is named twice must not be reported twice.
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
    // Standard output is a sink of its own only if there is no other one.
    return sinks.isEmpty
      ? [
        LineSink(isJSON: globals.json) { [json = globals.json] in
          try json ? writeBytes($0) : writeText(String(decoding: $0, as: UTF8.self))
        }
      ] : sinks
  }

  private func source(_ holds: Holds?) throws -> any AlertSource {
    // Recorded weather has no warnings, so the trial uses invented ones.
    if options.provider == .recorded { return ExerciseAlerts(clock: options.clock) }
    let provider = try options.makeProvider(holds)
    guard provider.service(of: .alerts) != nil else {
      throw Failure(.usage, "\(provider.name) has no warnings; use --provider weatherkit, or recorded for a trial")
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
    // A round without calls or notices writes no line, or a long watch would fill the terminal.
    let isSilent = report.calls + report.delivered + report.failedDeliveries + report.lapsed + report.postponed == 0
    if isLast || !isSilent { note(report.text) }
    for problem in report.problems.sorted() { note(problem) }
    guard isLast else { return }
    // A missing answer outranks a refused notice, which stays in the queue and is sent later.
    if report.failedCalls + report.postponed > 0 { throw ExitCode(Outcome.noForecast.rawValue) }
    if report.failedDeliveries > 0 { throw ExitCode(Outcome.noOutput.rawValue) }
  }
}

extension RoundReport {
  /// Counts of the round as one line, mostly without the zeros.
  fileprivate var text: String {
    let asked = "\(counted(calls, "call")) for \(counted(watchers, "place")) in \(counted(clusters, "cluster"))"
    var parts = [asked, counted(queued, "new notice"), "\(delivered) delivered"]
    if failedCalls > 0 { parts.append("\(counted(failedCalls, "cluster")) without an answer") }
    if postponed > 0 { parts.append("\(counted(postponed, "cluster")) postponed by the quota") }
    if notOffered > 0 { parts.append("\(counted(notOffered, "cluster")) without warnings from this provider") }
    if failedDeliveries > 0 { parts.append("\(failedDeliveries) refused by the sink") }
    if lapsed > 0 { parts.append("\(lapsed) lapsed") }
    if waiting > 0 { parts.append("\(waiting) in the queue") }
    return parts.joined(separator: ", ")
  }
}
