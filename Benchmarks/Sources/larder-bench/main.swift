import Foundation

// Usage: larder-bench [words that must occur in a scenario's name or its backend]
let words = CommandLine.arguments.dropFirst()
print("| scenario | backend | result |\n|---|---|---|")
for scenario in scenarios {
  for backend in Backend.allCases where words.allSatisfy({ "\(scenario.name) \(backend)".contains($0) }) {
    print("| \(scenario.name) | \(backend) | \(try await scenario.run(backend)) |")
  }
}
