// Conformance/ states what a StorageBackend must do, one named rule after the other, for backends of this package and of others.
// Invariant: a rule uses the public seam only, and names what it saw. Called by tests, of any framework.

public import Foundation

/// A rule that every `StorageBackend` must keep, with the check that shows it: together the conformance suite for backend authors.
///
/// With Swift Testing, one function runs the whole suite, each rule as a test case of its own:
///
/// ```swift
/// @Test(arguments: BackendRequirement.all)
/// func conforms(_ requirement: BackendRequirement) throws {
///   try requirement.check(.file(named: "store.db") { MyBackend(file: $0) })
/// }
/// ```
///
/// With another framework, loop over ``all`` and report each ``ConformanceFailure``; its text names the rule and what was seen instead.
/// A backend without files describes its places with ``BackendFactory/init(capabilities:place:)``.
///
/// Rules that need an ability which the factory does not list are skipped, so list what the backend can do: a backend that shares its store
/// adds ``BackendCapability/sharing``. A wrapper around another backend runs the suite as well.
///
/// Cost: a check makes a place of its own, is synchronous, and takes milliseconds, apart from the rules about size. Checks may run in
/// parallel.
///
/// ## Topics
///
/// ### Running the suite
/// - ``all``
/// - ``check(_:)``
/// - ``applies(to:)``
/// - ``ConformanceFailure``
///
/// ### Describing a backend
/// - ``BackendFactory``
/// - ``BackendPlace``
/// - ``BackendCapability``
///
/// ### Naming a rule
/// - ``name``
/// - ``rule``
public struct BackendRequirement: Sendable, Hashable, CustomStringConvertible {
  /// The rule as a name, such as "tombstonesComeBack".
  public let name: String
  /// The rule in words.
  public let rule: String
  private let needs: Set<BackendCapability>
  private let needsFile: Bool
  private let trial: @Sendable (Trial) throws -> Void

  init(
    _ name: String, _ rule: String, needs: Set<BackendCapability> = [], needsFile: Bool = false,
    _ trial: @escaping @Sendable (Trial) throws -> Void
  ) {
    self.name = name
    self.rule = rule
    self.needs = needs
    self.needsFile = needsFile
    self.trial = trial
  }

  /// All rules; new ones may be added.
  public static let all: [BackendRequirement] =
    opening + refusing + committing + addressing + keeping + lifetime + upkeep + sharing

  /// Whether the rule applies to a kind of backend, which depends on its capabilities.
  public func applies(to factory: BackendFactory) -> Bool { needs.isSubset(of: factory.capabilities) }

  /// Checks the rule in a fresh place; does nothing when the rule does not apply.
  ///
  /// - Throws: A ``ConformanceFailure`` that names the rule and says what was seen instead.
  public func check(_ factory: BackendFactory) throws(ConformanceFailure) {
    guard applies(to: factory) else { return }
    do {
      let place = try factory.makePlace()
      defer { place.remove() }
      guard !needsFile || place.file != nil, !needs.contains(.backup) || place.backup != nil else { return }
      let trial = Trial(place)
      defer { trial.end() }
      try self.trial(trial)
    } catch let violation as Violation {
      throw ConformanceFailure(requirement: self, seen: violation.seen, underlying: nil)
    } catch {
      throw ConformanceFailure(requirement: self, seen: "expected no error, found \(error)", underlying: error)
    }
  }

  /// The name of the rule.
  public var description: String { name }

  /// Whether both are the same rule.
  public static func == (left: BackendRequirement, right: BackendRequirement) -> Bool { left.name == right.name }
  /// Hashes the name.
  public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// A rule that a backend broke.
public struct ConformanceFailure: Error, CustomStringConvertible {
  /// The rule.
  public let requirement: BackendRequirement
  /// The behavior that was seen instead.
  public let seen: String
  /// The error that the backend threw where it must not, if that is what happened.
  public let underlying: (any Error)?

  /// The rule and what was seen.
  public var description: String { "\(requirement.name): \(requirement.rule). Seen: \(seen)" }
}

/// A breach of a rule, as the trial saw it.
struct Violation: Error {
  let seen: String
}

extension ConformanceFailure: LocalizedError {
  /// The same text as ``description``.
  public var errorDescription: String? { description }
}
