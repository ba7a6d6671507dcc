/// The consumption at the bounds of ten equal parts of a scenario's uses.
package struct Course: Sendable {
  package let name: String
  package let uses: Int
  /// Eleven of them: before the first tenth, and after each.
  package let bounds: [Consumption]

  package init(name: String, uses: Int, bounds: [Consumption]) {
    self.name = name
    self.uses = uses
    self.bounds = bounds
  }

  /// Uses the subject of a scenario as often as this, and ends it.
  static func run(_ scenario: Scenario, uses: Int, in place: Place) async throws -> Course {
    let subject = try await scenario.prepare(place)
    var reference = Reference()
    var bounds = [try await settled(subject, reference)]
    for tenth in 0..<10 {
      for part in (tenth * 10)..<(tenth * 10 + 10) {
        for number in (uses * part / 100)..<(uses * (part + 1) / 100) { try await subject.use(number) }
        reference.run()
      }
      bounds.append(try await settled(subject, reference))
    }
    try await subject.end()
    return Course(name: scenario.name, uses: uses, bounds: bounds)
  }

  /// Returns the consumption after tasks that were woken or cancelled had their turn.
  private static func settled(_ subject: Subject, _ reference: Reference) async throws -> Consumption {
    try await subject.settle()
    for _ in 0..<20 { await Task.yield() }
    return try .now(reference)
  }

  /// The processor time of one use in the second tenth, in nanoseconds: the first tenth fills caches and makes threads.
  package var firstCost: Double { time(ofTenth: 1).uses / Double(uses) * 10 }
  /// The processor time of one use in the last tenth.
  package var lastCost: Double { time(ofTenth: 9).uses / Double(uses) * 10 }
  /// The cost of the last tenth divided by that of the second, as it is or both as multiples of the reference, whichever is less: where other
  /// processes slow this one down, they slow both, and where they slow the reference alone, it says nothing.
  package var costRatio: Double {
    let (first, last) = (time(ofTenth: 1), time(ofTenth: 9))
    let ratio = last.uses / max(first.uses, 1)
    return min(ratio, ratio * first.reference / max(last.reference, 1))
  }
  /// The bytes that were allocated from the end of the second tenth on, and are not freed.
  package var growth: Int { bounds[10].allocatedBytes - bounds[2].allocatedBytes }
  /// The descriptors that were opened from the end of the second tenth on, and are not closed.
  package var descriptorGrowth: Int { bounds[10].descriptorCount - bounds[2].descriptorCount }

  /// Returns the processor time of a tenth in nanoseconds: of its uses, and of the reference.
  private func time(ofTenth tenth: Int) -> (uses: Double, reference: Double) {
    let reference = Double(bounds[tenth + 1].referenceTime - bounds[tenth].referenceTime)
    return (Double(bounds[tenth + 1].processorTime - bounds[tenth].processorTime) - reference, reference)
  }
}
