import Foundation

// Usage: larder-bench [words that must occur in a scenario's name or its backend]
let words = CommandLine.arguments.dropFirst()
let scenarios = storingScenarios + queryScenarios + uniquenessScenarios + indexScenarios
print("| scenario | backend | result |\n|---|---|---|")
for scenario in scenarios {
  for backend in scenario.backends where words.allSatisfy({ "\(scenario.name) \(backend)".contains($0) }) {
    let result = try await scenario.run(backend)
    print("| \(scenario.name) | \(backend) | \(result) (load \(loadAverage())) |")
  }
}
