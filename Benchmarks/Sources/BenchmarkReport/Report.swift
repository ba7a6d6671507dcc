import Foundation

/// Everything that one run measured, as it is kept in a file.
package struct Report: Codable, Sendable {
  package var machine: Machine
  package var date: Date
  package var records: Int
  /// The bytes of JSON that a record takes on average.
  package var recordBytes: Int
  package var isQuick: Bool
  package var scenarios: [ScenarioReport]

  package init(machine: Machine, date: Date, records: Int, recordBytes: Int, isQuick: Bool, scenarios: [ScenarioReport] = []) {
    (self.machine, self.date, self.records) = (machine, date, records)
    (self.recordBytes, self.isQuick, self.scenarios) = (recordBytes, isQuick, scenarios)
  }

  /// Returns the report with the scenarios of another one in place of those of the same name, and the others behind.
  package func replacing(_ other: Report) -> Report {
    var result = self
    for scenario in other.scenarios {
      if let place = result.scenarios.firstIndex(where: { $0.name == scenario.name }) {
        result.scenarios[place] = scenario
      } else {
        result.scenarios.append(scenario)
      }
    }
    return result
  }

  /// Reads a report, or says why a file is none.
  package init(contentsOf file: URL) throws {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    do {
      self = try decoder.decode(Report.self, from: Data(contentsOf: file))
    } catch let error as DecodingError {
      throw ReportError("expected a file that `larder-bench run --json` has written, found \(file.path): \(error)")
    } catch {
      throw ReportError("expected a file of figures, could not read \(file.path): \(error.localizedDescription)")
    }
  }

  package func encoded() throws -> Data {
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = .iso8601
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return try encoder.encode(self)
  }
}

/// The measurements of one scenario.
package struct ScenarioReport: Codable, Sendable {
  package var name: String
  package var group: String
  package var title: String
  /// The work that one value stands for, such as "save".
  package var operation: String
  /// The contender that ratios are given to.
  package var base: String?
  package var series: [Series]
  package var goals: [Goal]
  package var notes: [String]
  /// The reason for which a peer is ahead, where it is in the design.
  package var reason: String?
  /// The machine's load before and after, over the last minute.
  package var loads: [Double]

  package init(
    name: String, group: String, title: String, operation: String, base: String?, series: [Series], goals: [Goal] = [],
    notes: [String] = [], reason: String? = nil, loads: [Double] = []
  ) {
    (self.name, self.group, self.title, self.operation, self.base) = (name, group, title, operation, base)
    (self.series, self.goals, self.notes, self.reason, self.loads) = (series, goals, notes, reason, loads)
  }

  package var verdicts: [Verdict] { goals.compactMap { $0.verdict(on: series) } }

  /// Returns the ratios to the base, of the same size where there are sizes.
  package func ratio(of one: Series) -> Statistics? {
    guard let base, one.name != base, let other = series.first(where: { $0.name == base && $0.size == one.size }) else { return nil }
    return Statistics(one.rounds, over: other.rounds)
  }
}

/// An error of reading or comparing reports.
package struct ReportError: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}
