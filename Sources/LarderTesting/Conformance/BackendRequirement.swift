// Conformance/ holds the rules that every StorageBackend must keep, each with a name and a check, for backends of this package and others.
// Invariant: a rule calls only public members of a backend, and its failure names the behavior that broke it.
// Tests call the types of Conformance/.

public import Foundation

/// Rule that every `StorageBackend` must keep, with its check.
///
/// All rules together are the conformance suite for authors of backends.
///
/// With Swift Testing, one function runs the whole suite, with a test case for each rule:
///
/// ```swift
/// @Test(arguments: BackendRequirement.all)
/// func conforms(_ requirement: BackendRequirement) throws {
///   try requirement.check(.file(named: "store.db") { MyBackend(file: $0) })
/// }
/// ```
///
/// With another framework, loop over ``all`` and report each ``ConformanceFailure``. The text of a failure names the rule and the behavior
/// that broke it. For a backend without files, describe its storage locations with ``BackendFactory/init(capabilities:place:)``.
///
/// The suite skips a rule that needs a capability which your factory does not list. List every capability of the backend, so that no rule
/// for it is skipped. If several processes can share a store of the backend, add ``BackendCapability/sharing``. If it is a `PagingBackend`,
/// add ``BackendCapability/paging``. If you wrap another backend, run the suite over the wrapper, too.
///
/// Cost: each check is synchronous and makes a new storage location. A check takes milliseconds, except for the rules about large values
/// and many records. Checks may run in parallel.
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
  /// Name of the rule, such as "tombstonesComeBack".
  public let name: String
  /// Sentence that states the rule.
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

  /// All rules of the conformance suite.
  ///
  /// A later version of Larder may add rules.
  public static let all: [BackendRequirement] =
    opening + refusing + committing + addressing + keeping + lifetime + upkeep + sharing + paging

  /// Returns true if the factory has every capability that the rule needs.
  public func applies(to factory: BackendFactory) -> Bool { needs.isSubset(of: factory.capabilities) }

  /// Checks the rule in a new storage location, or does nothing if the rule does not apply.
  ///
  /// - Throws: A ``ConformanceFailure`` that names the rule and the behavior that broke it.
  public func check(_ factory: BackendFactory) throws(ConformanceFailure) {
    guard applies(to: factory) else { return }
    do {
      let place = try factory.makePlace()
      defer { place.remove() }
      // A storage location may have no main file, or no file for a backup although the factory lists `.backup`. A rule that needs a missing
      // file is skipped.
      guard !needsFile || place.file != nil, !needs.contains(.backup) || place.backup != nil else { return }
      let trial = Trial(place)
      // The call of `trial.end()` closes the backend before `place.remove()` removes the files, because an open backend may still write to
      // them.
      defer { trial.end() }
      try self.trial(trial)
    } catch let violation as Violation {
      throw ConformanceFailure(requirement: self, seen: violation.seen, underlying: nil)
    } catch {
      // An error that no step of the rule expects breaks the rule, too: the backend threw where it must succeed.
      throw ConformanceFailure(requirement: self, seen: "expected no error, found \(error)", underlying: error)
    }
  }

  /// Name of the rule.
  public var description: String { name }

  /// Returns true if both rules have the same name.
  public static func == (left: BackendRequirement, right: BackendRequirement) -> Bool { left.name == right.name }
  /// Hashes the name of the rule.
  public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// Error of a backend that broke a rule of the conformance suite.
public struct ConformanceFailure: Error, CustomStringConvertible {
  /// Rule that the backend broke.
  public let requirement: BackendRequirement
  /// Behavior that broke the rule.
  public let seen: String
  /// Error that the backend threw where it must succeed, or `nil` if the rule was broken in another way.
  public let underlying: (any Error)?

  /// Name and text of the rule, and the behavior that broke it.
  public var description: String { "\(requirement.name): \(requirement.rule). Seen: \(seen)" }
}

/// Error that ends a ``Trial`` when the backend breaks the rule.
struct Violation: Error {
  let seen: String
}

extension ConformanceFailure: LocalizedError {
  /// The same text as ``description``.
  public var errorDescription: String? { description }
}
