/// A device that has asked for the changes of a scope, with what it said about itself.
struct DeviceSighting: Sendable, Hashable {
  var scope: String
  var device: String
  /// The identity that asked.
  var owner: String
  /// The time of the question, in milliseconds since 1970.
  var seenAt: Int
  /// The history that the device has read.
  var history: String
  /// The commit of the history up to which the device has read.
  var position: Int
  /// The number of records with edits that the server has not taken; `nil` where the device did not say.
  var pending: Int?
  /// The version of the app; `nil` where the device did not say.
  var app: String?
}

/// The devices that have not read everything, by scope.
struct DeviceLags: Sendable, Hashable {
  /// The devices of one scope.
  struct Scope: Sendable, Hashable {
    var scope: String
    /// The number of devices that have not read the newest commit.
    var devices: Int
    /// The number of commits that the last of them is behind.
    var commits: Int
  }

  /// The number of devices that have asked for changes lately, counted once for each scope.
  var seen = 0
  /// The number of scopes with devices that are behind.
  var scopesBehind = 0
  /// The scopes whose devices are behind most; not all of them, since peers choose the names of scopes.
  var worst: [Scope] = []
}
