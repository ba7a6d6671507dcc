import Larder

extension Spot {
  /// The values of a spot that a person changes; what is `nil` stays as it is.
  public struct Changes: Hashable, Sendable {
    /// The time zone.
    public var timezone: String?
    /// The country.
    public var country: String?
    /// The kind.
    public var kind: String?
    /// The source.
    public var source: String?
    /// The rating; 0 for none.
    public var rating: Int?
    /// The notes; empty for none.
    public var notes: String?

    /// Makes changes.
    public init(
      timezone: String? = nil, country: String? = nil, kind: String? = nil, source: String? = nil, rating: Int? = nil, notes: String? = nil
    ) {
      (self.timezone, self.country, self.kind) = (timezone, country, kind)
      (self.source, self.rating, self.notes) = (source, rating, notes)
    }

    /// Whether nothing is to be changed.
    public var isEmpty: Bool { self == Changes() }
  }

  /// Returns the spot with other values.
  ///
  /// - Throws: `SpotProblem` for a value that cannot be.
  public func edited(_ changes: Changes) throws(SpotProblem) -> Spot {
    var spot = try Spot(
      name: name, latitude: latitude, longitude: longitude, timezone: changes.timezone ?? timezone, country: changes.country ?? country,
      kind: changes.kind ?? kind, source: changes.source ?? source, rating: changes.rating ?? rating, notes: changes.notes ?? notes,
      tags: [])
    (spot.tags, spot.visits) = (tags, visits)
    return spot
  }

  /// Returns the spot with tags added and others removed.
  ///
  /// - Throws: `SpotProblem` for what is no tag, and for too many.
  public func tagged(_ added: [String], removing removed: [String] = []) throws(SpotProblem) -> Spot {
    let gone = try Self.normalizedTags(removed, known: removed.count)
    var spot = self
    spot.tags = try Self.normalizedTags(tags.filter { !gone.contains($0) } + added, known: tags.count)
    return spot
  }

  /// Returns the spot with more visits.
  ///
  /// - Throws: `SpotProblem` for more visits than are counted.
  public func visited(_ count: Int = 1) throws(SpotProblem) -> Spot {
    let (sum, isTooLarge) = visits.addingReportingOverflow(count)
    guard !isTooLarge, sum <= Self.visitLimit else { throw SpotProblem(.visits, "visits would be above \(Self.visitLimit)") }
    var spot = self
    spot.visits = sum
    return spot
  }

  /// Returns the spot in the place of a stored one, whose tags and visits it keeps.
  fileprivate func replacing(_ old: Spot) throws(SpotProblem) -> Spot {
    var spot = self
    (spot.tags, spot.visits) = (old.tags, old.visits)
    do throws(SpotProblem) { return try spot.tagged(tags) } catch {
      throw SpotProblem(error.field, "\(old.id): \(error.description), with those that it has")
    }
  }
}

extension SpotStore {
  /// Saves spots, all or none, each in the place of a stored one of the same id.
  ///
  /// The visits of a stored one stay, and its tags join those of the new one: neither is known to whoever writes a list of places.
  /// - Returns: The spots as they are stored.
  /// - Throws: `SpotProblem` where there are too many tags then; the errors of storage.
  @discardableResult
  public func add(_ new: [Spot]) async throws -> [Spot] {
    try await spots.transaction { [spots] transaction in
      var stored: [Spot] = []
      stored.reserveCapacity(new.count)
      for spot in new {
        let old = try transaction.find(by: spot.id, in: spots)
        let spot = try old.map { (old) throws(SpotProblem) in try spot.replacing(old) } ?? spot
        try transaction.save(spot, in: spots)
        stored.append(spot)
      }
      return stored
    }
  }

  /// Changes stored spots, all or none, each as it is when the change is made.
  ///
  /// - Returns: The spots as they are stored.
  /// - Throws: What the closure throws, and then nothing was changed; `.notFound` where one is gone; the errors of storage.
  @discardableResult
  public func change(_ ids: [String], _ body: @escaping @Sendable (Spot) throws -> Spot) async throws -> [Spot] {
    try await spots.transaction { [spots] transaction in
      for id in ids { try transaction.update(id, in: spots) { spot in spot = try body(spot) } }
      var seen: Set<String> = []
      return try ids.filter { seen.insert($0).inserted }.compactMap { try transaction.find(by: $0, in: spots) }
    }
  }
}
