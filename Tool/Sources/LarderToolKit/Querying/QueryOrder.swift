internal import Larder

/// Field to sort by, with the direction.
package struct QueryOrder: Equatable, Sendable {
  let path: FieldPath
  let isDescending: Bool
}
