import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct AlertsSimulate: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Runs the pipeline of warnings with many watchers, and counts the calls that clusters save.",
    discussion: """
      Everything is as in `alerts watch` but the provider, which is a script, the clock, which stands still while work is done, and the store, which \
      is in memory; no store is opened. The watchers are at and around the hundred places that ship with the program. The same seed prints the \
      same. 100,000 watchers take some seconds, a debug build a minute or more. The exit code is 1 if a notice is missing or came twice.
      """)

  @Option(help: ArgumentHelp("The number of watchers.", valueName: "count"))
  var watchers = 100_000

  @Option(help: ArgumentHelp("The seed of all random choices.", valueName: "number"))
  var seed: UInt64 = 1

  @Option(help: ArgumentHelp("The simulated time.", valueName: "hours"))
  var hours = 6

  @Option(help: ArgumentHelp("The interval between two calls for a cluster.", valueName: "minutes"))
  var every = 15

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard (1...1_000_000).contains(watchers) else { throw ValidationError("--watchers takes 1 to 1000000.") }
    guard (1...168).contains(hours) else { throw ValidationError("--hours takes 1 to 168.") }
    guard (1...1440).contains(every) else { throw ValidationError("--every takes 1 to 1440 minutes.") }
  }

  func execute() async throws {
    var bar = ProgressBar("Simulating")
    let clock = ContinuousClock()
    let start = clock.now
    let simulation = AlertSimulation(watchers: watchers, seed: seed, duration: .hours(hours), every: .seconds(every * 60))
    let result = try await simulation.run(around: ShippedSpots.spots) { bar.show($0) }
    bar.finish()
    note("took \(Int(start.duration(to: clock.now) / .seconds(1))) s")
    if globals.json {
      try writeJSON(["seed": seed, "savedPercent": result.savedPercent, "result": result] as JSONRow)
    } else {
      try writeText(text(result))
    }
    if result.repeatedNotices > 0 || result.notices + result.lapsedNotices != result.expectedNotices {
      throw ExitCode(Outcome.other.rawValue)
    }
  }

  private func text(_ result: AlertSimulation.Result) -> String {
    """
    \(result.watchers) watchers at \(result.points) points, \(hours) h in \(result.rounds) rounds, seed \(seed)
      Clusters   \(result.clusters), the largest of \(result.largestCluster), none farther than \(result.farthestMeters) m from its question
      Calls      \(result.calls) instead of \(result.callsWithoutClusters) with one for each watcher: \(result.savedPercent) % saved
      Quota      \(result.callsInBusiestMinute) calls in the busiest minute; \(result.failedCalls) calls failed, as the script wants
      Warnings   \(result.alerts), \(result.expectedNotices) notices to give
      Notices    \(result.notices) given, \(result.lapsedNotices) lapsed, \(result.repeatedNotices) given twice

    """
  }
}
