import CPowerCuts
import Foundation

/// A disk whose power can be cut, with a file system on it that is mounted.
final class Disk {
  let directory: URL
  private let disk: OpaquePointer

  /// Makes a disk with the bytes of a file system and mounts it, in a directory that exists.
  init(_ template: Data, in directory: URL, options: String) throws {
    let file = directory.appendingPathComponent("disk")
    self.directory = directory.appendingPathComponent("mounted")
    try Data().write(to: file)
    try FileManager.default.createDirectory(at: self.directory, withIntermediateDirectories: true)
    guard let disk = template.withUnsafeBytes({ power_disk_start($0.baseAddress, $0.count, file.path) }) else {
      throw Failure("the disk does not start: \(String(cString: strerror(errno)))")
    }
    self.disk = disk
    try Self.mount(file, on: self.directory, options: options)
  }

  /// Unmounts it and takes it away.
  func stop() throws {
    power_disk_hold(disk, 0)
    try Self.unmount(directory)
    power_disk_stop(disk)
  }

  /// Has it wait before this many requests from now on, `nil` to go on.
  func hold(before requests: Int?) { power_disk_hold(disk, requests ?? 0) }

  var isHeld: Bool { power_disk_is_held(disk) != 0 }

  /// Becomes readable when the disk begins to wait.
  var descriptor: Int32 { power_disk_descriptor(disk) }

  var counts: (writes: Int, flushes: Int) {
    var (writes, flushes) = (0, 0)
    power_disk_counts(disk, &writes, &flushes)
    return (writes, flushes)
  }

  /// Writes what a cut now leaves of the disk.
  func cut(keeping kept: power_kept, seed: UInt64, into image: UnsafeMutableRawPointer) { power_disk_cut(disk, kept, seed, image) }

  static func mount(_ file: URL, on directory: URL, options: String) throws {
    let error = power_mount(file.path, directory.path, options)
    if error != 0 { throw Failure("\(file.lastPathComponent) does not mount: \(String(cString: strerror(error)))") }
  }

  static func unmount(_ directory: URL) throws {
    let error = power_unmount(directory.path)
    if error != 0 { throw Failure("\(directory.lastPathComponent) does not unmount: \(String(cString: strerror(error)))") }
  }
}
