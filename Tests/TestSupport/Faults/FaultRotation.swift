/// The faults of a run that has no time for all of them at every call: chosen so that each site of the sources meets each of them.
package struct FaultRotation {
  /// Whether further calls of a site that has met every fault once are failed for ever, by a third of the faults that the seed decides.
  private let isPermanent: Bool
  /// Whether a third of the calls of a site is failed, also where it has met all: the program is in another state then.
  private let isRepeating: Bool
  /// Which fault is the first.
  private let shift: Int

  /// Whether a site meets all faults although it makes few calls, which are given several then; decided for its first call.
  private let isComplete: (FaultPoint) -> Bool

  package init(
    seed: UInt64, isPermanent: Bool = false, isRepeating: Bool = false, isComplete: @escaping (FaultPoint) -> Bool = { _ in true }
  ) {
    (self.isPermanent, self.isRepeating, self.isComplete) = (isPermanent, isRepeating, isComplete)
    shift = Int(seed % 97)
  }

  /// Returns the faults of each call of some programs: the k-th of a site takes the k-th fault of its list.
  package func faults(of programs: [[FaultPoint]]) -> [[[Fault]]] {
    var chosen = programs.map { [[Fault]](repeating: [], count: $0.count) }
    var visits: [Site: [(program: Int, call: Int)]] = [:]
    var order: [Site] = []
    for (program, calls) in programs.enumerated() {
      for (index, point) in calls.enumerated() {
        // Where callers are not known, the calls of a kind on a file are taken for one site.
        let site = Site(call: point.call, offset: point.site, key: point.site == nil ? point.key : "")
        if visits[site] == nil { order.append(site) }
        visits[site, default: []].append((program, index))
      }
    }
    for (number, site) in order.enumerated() {
      guard let calls = visits[site], let first = calls.first else { continue }
      let isComplete = isComplete(programs[first.program][first.call])
      let once = Fault.all(of: site.call)
      let permanent = Fault.all(of: site.call, isPermanent: true)
      let list =
        once.indices.map { once[($0 + shift + number) % once.count] }
        + (isPermanent ? permanent.indices.filter { ($0 + shift + number) % 3 == 0 }.map { permanent[$0] } : [])
      let needed = min(calls.count, isComplete ? list.count : once.count)
      let most = isRepeating ? max(needed, calls.count / 3) : needed
      let count = isComplete ? max(most, once.count) : most
      for index in 0..<count {
        // Few faults are spread over many calls.
        let visit = calls[((count < calls.count ? index * calls.count / count : index) + shift) % calls.count]
        chosen[visit.program][visit.call].append(list[index % list.count])
      }
    }
    return chosen
  }

  /// Returns the faults of each call of one program.
  package func faults(of calls: [FaultPoint]) -> [[Fault]] { faults(of: [calls]).first ?? [] }

  private struct Site: Hashable {
    var call: SeamCall
    var offset: UInt?
    var key: String
  }
}
