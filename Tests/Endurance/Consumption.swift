import CEndurance
import Foundation

/// The processor time, memory and descriptors of this process up to a moment.
package struct Consumption: Sendable {
  /// The processor time of all threads, in nanoseconds.
  package var processorTime: UInt64
  /// The part of it that a reference has taken: the same work each time, done between the uses.
  package var referenceTime: UInt64
  /// The bytes that are allocated and not freed.
  package var allocatedBytes: Int
  /// The bytes of physical memory that the process has.
  package var residentBytes: Int
  /// The number of open descriptors.
  package var descriptorCount: Int

  package init(processorTime: UInt64, referenceTime: UInt64, allocatedBytes: Int, residentBytes: Int, descriptorCount: Int) {
    self.processorTime = processorTime
    self.referenceTime = referenceTime
    self.allocatedBytes = allocatedBytes
    self.residentBytes = residentBytes
    self.descriptorCount = descriptorCount
  }

  /// Reads what the process has consumed.
  static func now(_ reference: Reference) throws -> Consumption {
    let time = endurance_processor_time()
    endurance_trim()
    return Consumption(
      processorTime: time, referenceTime: reference.time, allocatedBytes: endurance_allocated_bytes(), residentBytes: try residentBytes(),
      descriptorCount: try descriptorCount())
  }

  private static func residentBytes() throws -> Int {
    #if os(Linux)
      let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ").dropFirst().first
      return (pages.flatMap { Int($0) } ?? 0) * sysconf(Int32(_SC_PAGESIZE))
    #else
      return 0
    #endif
  }

  /// Returns the number of open descriptors.
  static func descriptorCount() throws -> Int {
    #if os(Linux)
      let directory = "/proc/self/fd"
    #else
      let directory = "/dev/fd"
    #endif
    return try FileManager.default.contentsOfDirectory(atPath: directory).count
  }
}
