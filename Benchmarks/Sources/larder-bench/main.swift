import Foundation

// Usage: larder-bench [words that must occur in a scenario's name or its backend, in whatever case]
let words = CommandLine.arguments.dropFirst().map { $0.lowercased() }
let scenarios = storingScenarios + queryScenarios + uniquenessScenarios + indexScenarios
print("| scenario | backend | result |\n|---|---|---|")
for scenario in scenarios {
  for backend in scenario.backends where words.allSatisfy({ "\(scenario.name) \(backend)".lowercased().contains($0) }) {
    let result = try await scenario.run(backend)
    print("| \(scenario.name) | \(backend) | \(result) (load \(loadAverage())) |")
  }
}
