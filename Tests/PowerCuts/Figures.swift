/// The outcomes of the cuts of a row.
struct Figures {
  var cuts = 0
  /// The cuts within a step or an opening, not behind one.
  var within = 0
  var acknowledged = 0
  /// The acknowledged writes that were not there after a cut, and the cuts with any.
  var lost = 0
  var cutsWithLoss = 0
  /// The cuts after which nothing could be read, or what there never was.
  var torn = 0
  /// The cuts after which the store was written to, closed and opened once more.
  var continued = 0
  var (writes, flushes) = (0, 0)

  mutating func note(_ verdict: Ledger.Verdict) {
    switch verdict {
    case .whole: break
    case .lost(let count): (lost, cutsWithLoss) = (lost + count, cutsWithLoss + 1)
    case .torn: torn += 1
    }
  }

  /// Whether a verdict is worth a line: each on Larder, and the first ones of each kind on a peer.
  func isNews(_ verdict: Ledger.Verdict, of row: Row) -> Bool {
    switch verdict {
    case .whole: false
    case .lost: row.isLarder || cutsWithLoss < 3
    case .torn: row.isLarder || torn < 3
    }
  }

  func line(of row: Row) -> String {
    "figures: power cuts \(cuts), \(row.rawValue): lost \(lost) in \(cutsWithLoss) cuts, torn \(torn); \(within) cuts within a write, "
      + "\(acknowledged) writes acknowledged, gone on after \(continued), the disk had \(writes) writes and \(flushes) flushes"
  }
}
