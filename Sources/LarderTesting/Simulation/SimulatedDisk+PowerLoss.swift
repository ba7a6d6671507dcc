extension SimulatedDisk {
  /// A change that a power cut can lose, as the choice of images sees it.
  enum UnsyncedChange {
    case write(file: Int, offset: Int, count: Int)
    case other
  }

  /// Every change that a power cut can lose: files by number, then directories by path, each in the order of its changes.
  var unsyncedChanges: [UnsyncedChange] {
    var list: [UnsyncedChange] = []
    for number in files.keys.sorted() {
      for logged in files[number]?.changes ?? [] where logged.standing != .synced {
        if case .data(let offset, let bytes) = logged.change {
          list.append(.write(file: number, offset: offset, count: bytes.count))
        } else {
          list.append(.other)
        }
      }
    }
    for directory in directories.values { list += directory.changes.filter { $0.standing != .synced }.map { _ in .other } }
    return list
  }

  /// Loses power, and keeps some of the ``unsyncedChanges``; everything that is left is durable.
  mutating func losePower(keeping kept: [Bool], torn: (change: Int, parts: [Range<Int>])?) {
    var index = 0
    func isKept(_ standing: Standing) -> Bool {
      if standing == .synced { return true }
      defer { index += 1 }
      return kept[index]
    }
    for number in files.keys.sorted() {
      guard let file = files[number], !file.changes.isEmpty else { continue }
      var image = file.durable
      for logged in file.changes {
        let tearing = logged.standing != .synced && index == torn?.change ? torn : nil
        guard isKept(logged.standing) else { continue }
        // A sync of bytes covers the size that they reach, also where an earlier one of that size failed.
        if logged.standing == .synced, case .data(let offset, let bytes) = logged.change { image.grow(to: offset + bytes.count) }
        if let tearing, case .data(let offset, let bytes) = logged.change {
          bytes.withUnsafeBytes { bytes in
            for part in tearing.parts { image.write(UnsafeRawBufferPointer(rebasing: bytes[part]), at: offset + part.lowerBound) }
          }
        } else {
          image.apply(logged.change)
        }
      }
      files[number] = File(durable: image, current: image)
    }
    for path in directories.keys.sorted() {
      guard let directory = directories[path], !directory.changes.isEmpty else { continue }
      var entries = directory.durable
      for logged in directory.changes where isKept(logged.standing) { entries.apply(logged.change) }
      directories[path] = Directory(durable: entries, current: entries)
    }
    forgetUnreachable()
  }

  /// Drops directories whose own entry was lost, and files without a name.
  private mutating func forgetUnreachable() {
    var reached: [String: Directory] = [:]
    var named: [Int: File] = [:]
    var open = ["/"]
    while let path = open.popLast() {
      guard let directory = directories[path] else { continue }
      reached[path] = directory
      for (name, entry) in directory.current {
        switch entry {
        case .directory: open.append(Self.join(path, name))
        case .file(let number): named[number] = files[number]
        }
      }
    }
    directories = reached
    files = named
  }
}
