internal import Larder

/// A field to sort by, and the direction.
package struct QueryOrder: Equatable, Sendable {
  let path: FieldPath
  let isDescending: Bool
}
