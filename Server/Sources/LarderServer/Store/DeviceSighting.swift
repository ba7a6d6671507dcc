/// Sighting: the newest request of a device for the changes of a scope, with the state that the device reported.
struct DeviceSighting: Sendable, Hashable {
  var scope: String
  var device: String
  /// Identity that made the request.
  var owner: String
  /// Time of the request, in milliseconds since 1970.
  var seenAt: Int
  /// History (line of commits) that the device has read.
  var history: String
  /// Commit of the history up to which the device has read.
  var position: Int
  /// Number of records with edits that the server has not accepted, or `nil` if the device did not report it.
  var pending: Int?
  /// Version of the app, or `nil` if the device did not report it.
  var app: String?
}

/// Counts of the devices that have not read everything, by scope.
struct DeviceLags: Sendable, Hashable {
  /// Counts of the devices in one scope that have not read everything.
  struct Scope: Sendable, Hashable {
    var scope: String
    /// Number of devices that have not read the newest commit.
    var devices: Int
    /// Number of commits that the device furthest behind has not read.
    var commits: Int
  }

  /// Number of devices that have asked for changes lately, counted once for each scope.
  var seen = 0
  /// Number of scopes with devices that are behind.
  var scopesBehind = 0
  /// Scopes whose devices are furthest behind.
  ///
  /// Their number is limited, since clients choose the names of scopes.
  var worst: [Scope] = []
}
