import Foundation

/// The machine that figures belong to.
package struct Machine: Codable, Equatable, Sendable {
  package var processor: String
  package var cores: Int
  package var memory: Int
  package var system: String
  package var swift: String

  package init(processor: String, cores: Int, memory: Int, system: String, swift: String) {
    (self.processor, self.cores, self.memory, self.system, self.swift) = (processor, cores, memory, system, swift)
  }

  package static var current: Machine {
    let information = ProcessInfo.processInfo
    return Machine(
      processor: processorName, cores: information.activeProcessorCount, memory: Int(information.physicalMemory),
      system: information.operatingSystemVersionString + kernel, swift: compiler)
  }

  package var text: String {
    "\(processor), \(cores) cores, \(Figures.digits(Double(memory) / 1_073_741_824)) GiB, \(system), \(swift)"
  }

  /// The processes that wanted a core over the last minute: well above the number of cores, figures are guesses.
  package static var load: Double {
    var loads = [Double](repeating: 0, count: 3)
    return getloadavg(&loads, 3) > 0 ? loads[0] : 0
  }

  private static var processorName: String {
    guard let text = try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8),  // there is none on macOS
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("model name") }), let colon = line.firstIndex(of: ":")
    else { return "processor unknown" }
    return line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
  }

  private static var kernel: String {
    guard let text = try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8) else { return "" }  // none on macOS
    return ", kernel " + text.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  private static var compiler: String {
    #if compiler(>=6.4)
      "Swift 6.4 or later"
    #elseif compiler(>=6.3)
      "Swift 6.3"
    #else
      "Swift 6.2"
    #endif
  }
}
