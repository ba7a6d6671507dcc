/// The place in which a world's store is kept; its cache and its blobs are in simulated files in any case.
package enum Backing: String, CaseIterable, Sendable, CustomStringConvertible {
  case memory, json, sqlite, shared

  package var description: String { rawValue }
}
