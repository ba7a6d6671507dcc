import Foundation
import Larder
import TestSupport

/// A directory with what lies in it, whatever kind it is.
extension TemporaryDirectory {
  /// Describes every entry, without following a link: its kind and bytes.
  func fingerprint(without ignored: Set<String> = []) throws -> [String: String] {
    var found: [String: String] = [:]
    for name in try names where !ignored.contains(name) { found[name] = try Self.describe(pathOfFile(name)) }
    return found
  }

  private static func describe(_ path: String) throws -> String {
    var status = stat()
    guard lstat(path, &status) == 0 else { return "gone" }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return try "file " + Data(contentsOf: URL(fileURLWithPath: path)).base64EncodedString()
    case S_IFLNK: return "link to \(try FileManager.default.destinationOfSymbolicLink(atPath: path))"
    case S_IFDIR: return "directory of \(try FileManager.default.contentsOfDirectory(atPath: path).sorted())"
    case let kind: return "kind \(kind)"
    }
  }

  /// Removes everything from the directory.
  func clear() throws {
    for name in try names { try FileManager.default.removeItem(at: file(name)) }
  }

  /// Makes the directory hold these files and nothing else, whatever lies in it.
  func fill(_ files: [String: Data]) throws {
    try clear()
    for (name, data) in files { try data.write(to: file(name)) }
  }
}

/// A kind of entry that can lie under a name.
enum EntryKind: String, CaseIterable, Sendable {
  case empty, zeros, text, directory, fullDirectory, pipe, socket, link, danglingLink, loop, deviceLink, hardLink

  /// Whether it is a plain file.
  var isFile: Bool { [.empty, .zeros, .text, .hardLink].contains(self) }

  /// The text of the files that are not the store's.
  static let diary = Data("my diary, page 1\n".utf8)

  /// Makes such an entry; what it leads to lies in another directory.
  func make(_ path: String, beside other: TemporaryDirectory) throws {
    let target = other.pathOfFile("target-\(UUID().uuidString)")
    switch self {
    case .empty: try Data().write(to: URL(fileURLWithPath: path))
    case .zeros: try Data(count: 600).write(to: URL(fileURLWithPath: path))
    case .text: try Self.diary.write(to: URL(fileURLWithPath: path))
    case .directory, .fullDirectory:
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      if self == .fullDirectory { try Self.diary.write(to: URL(fileURLWithPath: path + "/diary")) }
    case .pipe: try check(mkfifo(path, 0o600), "mkfifo")
    case .socket: try Self.bind(path)
    case .link:
      try Self.diary.write(to: URL(fileURLWithPath: target))
      try check(symlink(target, path), "symlink")
    case .danglingLink: try check(symlink(target, path), "symlink")
    case .loop: try check(symlink(path, path), "symlink")
    case .deviceLink: try check(symlink("/dev/zero", path), "symlink")
    case .hardLink:
      try Self.diary.write(to: URL(fileURLWithPath: target))
      try check(Foundation.link(target, path), "link")
    }
  }

  private func check(_ result: Int32, _ call: String) throws {
    if result != 0 { throw SystemCallError(call: call, errorNumber: errno) }
  }

  /// Binds a socket under a short name in the same directory, since the path of a socket is short, and renames it.
  private static func bind(_ path: String) throws {
    #if canImport(Glibc)
      let descriptor = Foundation.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let descriptor = Foundation.socket(AF_UNIX, SOCK_STREAM, 0)
    #endif
    defer { _ = close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let short = URL(fileURLWithPath: path).deletingLastPathComponent().path + "/s"
    let bytes = Array(short.utf8)
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { throw SystemCallError(call: "bind", errorNumber: ENAMETOOLONG) }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Foundation.bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0, rename(short, path) == 0 else { throw SystemCallError(call: "bind", errorNumber: errno) }
  }
}
