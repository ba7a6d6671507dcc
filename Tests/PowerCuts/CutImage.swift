import CPowerCuts
import Foundation

/// The image of a disk that a cut has left, in a file that is mounted to look into it.
final class CutImage {
  private let file: URL
  private let directory: URL
  private let bytes: UnsafeMutableRawPointer
  private let size: Int

  /// Makes an image of the size of a template.
  init(_ template: Data, in directory: URL) throws {
    file = directory.appendingPathComponent("image")
    self.directory = directory.appendingPathComponent("cut")
    size = template.count
    try template.write(to: file)
    try FileManager.default.createDirectory(at: self.directory, withIntermediateDirectories: true)
    let descriptor = open(file.path, O_RDWR)
    defer { close(descriptor) }
    guard let mapped = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), mapped != MAP_FAILED else {
      throw Failure("the image cannot be mapped: \(String(cString: strerror(errno)))")
    }
    bytes = mapped
  }

  deinit { munmap(bytes, size) }

  /// Takes the image of a disk.
  func take(_ disk: Disk, keeping kept: power_kept, seed: UInt64) { disk.cut(keeping: kept, seed: seed, into: bytes) }

  /// A copy of the image as it was taken.
  var copy: Data { Data(bytes: bytes, count: size) }

  /// Looks into the image with a body that is given its directory.
  func whileMounted<R>(_ body: (URL) async throws -> R) async throws -> R {
    try Disk.mount(file, on: directory, options: "noinit_itable")
    let result: R
    do {
      result = try await body(directory)
    } catch {
      try Disk.unmount(directory)
      throw error
    }
    try Disk.unmount(directory)
    return result
  }
}
