/// One work of a peer, beside the forms of Larder that do the same work.
package struct PeerRow: Sendable {
  /// A form of Larder, such as its JSON store, and how it compares.
  package struct Form: Sendable {
    package let series: Series
    /// The median over the rounds of the peer's value divided by Larder's: above 1, Larder takes less.
    package let ratio: Double
  }

  /// The title of the scenario.
  package let title: String
  package let peer: Series
  /// At most one form for each store of Larder: the slowest where several do the work.
  package let forms: [Form]

  /// The scenario and the work, where the peer does several.
  package var work: String { title + (peer.work.map { ", \($0)" } ?? "") }

  /// The work in at most 52 characters, for a picture: the title up to its first comma, or cut short.
  package var shortWork: String {
    let most = 52
    if work.count <= most { return work }
    let end = peer.work.map { ", \($0)" } ?? ""
    let start = title.prefix { $0 != "," }
    return start.count + end.count <= most ? start + end : start.prefix(max(0, most - 1 - end.count)) + "…" + end
  }
}

extension ScenarioReport {
  /// Returns the forms of Larder that do the work of a peer, all of them where none is named for it.
  ///
  /// The work is named behind the comma of a contender's name.
  private func formsDoing(_ work: String?) -> [Series] {
    let all = series.filter { $0.kind == .larder && $0.size == nil }
    let same = all.filter { $0.work == work }
    return same.isEmpty ? all : same
  }

  private var peers: [Series] { series.filter { $0.kind == .peer && $0.size == nil } }

  /// The peers that do better than a form of Larder at the same work, each with the form that it is furthest ahead of.
  package var peersAhead: [(peer: Series, larder: Series)] {
    peers.compactMap { peer in
      let slowest = formsDoing(peer.work).max { $0.median < $1.median }
      return slowest.flatMap { $0.median > peer.median ? (peer, $0) : nil }
    }
  }

  /// A row for each peer.
  package var peerRows: [PeerRow] {
    peers.compactMap { peer in
      let forms = Dictionary(grouping: formsDoing(peer.work), by: \.engine).values
        .compactMap { $0.max { $0.median < $1.median } }
        .compactMap { form in Statistics(peer.rounds, over: form.rounds).map { PeerRow.Form(series: form, ratio: $0.median) } }
      return forms.isEmpty ? nil : PeerRow(title: title, peer: peer, forms: forms.sorted { $0.series.engine < $1.series.engine })
    }
  }
}
