import Larder

extension Spot {
  /// An edit of a spot, in which `nil` keeps the stored value.
  public struct Changes: Hashable, Sendable {
    /// New IANA name of the time zone.
    public var timezone: String?
    /// New country.
    public var country: String?
    /// New kind.
    public var kind: String?
    /// New source.
    public var source: String?
    /// New rating, 1 to 5, or 0 to remove the rating.
    public var rating: Int?
    /// New notes, or an empty text to remove them.
    public var notes: String?

    /// Creates an edit.
    public init(
      timezone: String? = nil, country: String? = nil, kind: String? = nil, source: String? = nil, rating: Int? = nil, notes: String? = nil
    ) {
      (self.timezone, self.country, self.kind) = (timezone, country, kind)
      (self.source, self.rating, self.notes) = (source, rating, notes)
    }

    /// Whether the edit changes no value.
    public var isEmpty: Bool { self == Changes() }
  }

  /// Returns a copy of the spot with the values of an edit.
  ///
  /// - Throws: `SpotProblem` for an invalid value.
  public func edited(_ changes: Changes) throws(SpotProblem) -> Spot {
    var spot = try Spot(
      name: name, latitude: latitude, longitude: longitude, timezone: changes.timezone ?? timezone, country: changes.country ?? country,
      kind: changes.kind ?? kind, source: changes.source ?? source, rating: changes.rating ?? rating, notes: changes.notes ?? notes,
      tags: [])
    // Not through the initializer, which would refuse tags beyond the limit. A sync merge can have exceeded it.
    (spot.tags, spot.visits) = (tags, visits)
    return spot
  }

  /// Returns a copy of the spot with some tags added and others removed.
  ///
  /// - Throws: `SpotProblem` for an invalid tag, and for too many tags.
  public func tagged(_ added: [String], removing removed: [String] = []) throws(SpotProblem) -> Spot {
    // The limit holds for the tags of a spot, and not for the number of tags to remove.
    let gone = try Self.normalizedTags(removed, known: removed.count)
    var spot = self
    spot.tags = try Self.normalizedTags(tags.filter { !gone.contains($0) } + added, known: tags.count)
    return spot
  }

  /// Returns a copy of the spot with a larger count of visits.
  ///
  /// - Throws: `SpotProblem` for a sum above the limit of 1,000,000,000.
  public func visited(_ count: Int = 1) throws(SpotProblem) -> Spot {
    // `count` comes from the caller, and `+` would stop the program on overflow.
    let (sum, isTooLarge) = visits.addingReportingOverflow(count)
    guard !isTooLarge, sum <= Self.visitLimit else { throw SpotProblem(.visits, "visits would be above \(Self.visitLimit)") }
    var spot = self
    spot.visits = sum
    return spot
  }

  /// Returns this spot with the visits of the stored spot that it replaces, and with the tags of both.
  fileprivate func replacing(_ old: Spot) throws(SpotProblem) -> Spot {
    var spot = self
    (spot.tags, spot.visits) = (old.tags, old.visits)
    do throws(SpotProblem) { return try spot.tagged(tags) } catch {
      throw SpotProblem(error.field, "\(old.id): \(error.description), with those that it has")
    }
  }
}

extension SpotStore {
  /// Saves several spots in one transaction, each as an upsert by its id.
  ///
  /// A replaced spot keeps its visits, and its tags are added to the new ones, because the author of a list of places has neither.
  /// - Returns: The spots as they are stored.
  /// - Throws: `SpotProblem` if the two sets of tags together exceed the limit, and the errors of storage.
  @discardableResult
  public func add(_ new: [Spot]) async throws -> [Spot] {
    try await spots.transaction { [spots] transaction in
      var stored: [Spot] = []
      stored.reserveCapacity(new.count)
      for spot in new {
        // Read inside the transaction: a visit that another command counts before the commit must not be lost.
        let old = try transaction.find(by: spot.id, in: spots)
        let spot = try old.map { (old) throws(SpotProblem) in try spot.replacing(old) } ?? spot
        try transaction.save(spot, in: spots)
        stored.append(spot)
      }
      return stored
    }
  }

  /// Applies a closure to stored spots in one transaction.
  ///
  /// The closure gets each spot in its state at that moment, inside the transaction. If one change fails, no spot is changed.
  ///
  /// - Returns: The spots as they are stored.
  /// - Throws: The error of the closure, `.notFound` for a spot that was removed, and the errors of storage.
  @discardableResult
  public func change(_ ids: [String], _ body: @escaping @Sendable (Spot) throws -> Spot) async throws -> [Spot] {
    try await spots.transaction { [spots] transaction in
      for id in ids { try transaction.update(id, in: spots) { spot in spot = try body(spot) } }
      var seen: Set<String> = []
      // A caller may pass an id twice, but each spot is returned once.
      return try ids.filter { seen.insert($0).inserted }.compactMap { try transaction.find(by: $0, in: spots) }
    }
  }
}
