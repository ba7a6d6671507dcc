internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Collections and keys.
  static let addressing: [BackendRequirement] = [
    BackendRequirement("collectionsAreApart", "one key in two collections is two records, and each can be emptied alone") { trial in
      try trial.open()
      try trial.commit(.put("a", "1", in: "ones"), .put("a", "2", in: "twos"), .put("b", "3", in: "twos"))
      try trial.reopen()
      try trial.commit(.delete("a", in: "twos"), .delete("b", in: "twos"))
      try trial.reopen()
      try trial.commit(.put("a", "4", in: "twos"))
      try trial.reopen()
    },
    BackendRequirement(
      "collectionNamesAreApart", "names that a schema may have work; the odd ones are refused with unsupported rather than merged"
    ) { trial in
      try trial.open()
      let plain = ["a", "aa", "_a", "0", "1.5", "a.b", "a-b", "a_b", "a..", "_", "select", "meta", String(repeating: "n", count: 64)]
      for (number, name) in plain.enumerated() { try trial.commit(.put("k", "\(number)", in: name), .put("only \(number)", in: name)) }
      var accepted = plain
      let odd = ["A", "Aa", "SELECT", "sqlite_master", "sqlite_x", "larder", "larder_meta", "main", "null", "con"]
      for (number, name) in odd.enumerated() {
        do {
          try trial.commit(.put("k", "odd \(number)".debugDescription, in: name))
          accepted.append(name)
        } catch RepositoryError.Code.unsupported {
          continue
        }
      }
      try trial.reopen()
      try trial.commit([accepted.map { .delete("k", in: $0) }])
      try trial.reopen()
    },
    BackendRequirement("keysWithNULAreApart", "keys may hold NUL, and what follows it counts") { trial in
      try trial.open()
      try trial.commit(.put("a", "0"), .put("a\0one", "1"), .put("a\0two", "2"), .put("a\0", "3"), .put("\0", "4"), .put("\0\0", "5"))
      try trial.reopen()
      try trial.commit(.put("a\0one", "changed"), .delete("a\0two"), .delete("\0"))
      try trial.reopen()
    },
    BackendRequirement("keysAreComparedByBytes", "keys that Unicode calls equivalent, and cases, are different keys") { trial in
      try trial.open()
      let spellings = ["caf\u{E9}", "cafe\u{301}", "CAF\u{C9}", "\u{212B}", "\u{C5}", "A\u{30A}", "\u{FB01}", "fi", "ss", "\u{DF}"]
      for (number, key) in spellings.enumerated() { try trial.commit(.put(key, "\(number)")) }
      try trial.reopen()
      try trial.commit(.delete("caf\u{E9}"), .put("cafe\u{301}", "changed"))
      try trial.reopen()
    },
    BackendRequirement("theEmptyKeyIsAKey", "the empty key works like any other") { trial in
      try trial.open()
      try trial.commit(.put("", "1"), .put(" ", "2"))
      try trial.reopen()
      try trial.commit(.delete(""))
      try trial.reopen()
    },
    BackendRequirement("keysAreNoPaths", "keys that look like paths, queries or numbers are only keys") { trial in
      try trial.open()
      let keys = [
        "../x", "/", "/etc/passwd", "..", ".", "a/b", "a\\b", "C:", "~", "%2e%2e", "'; DROP TABLE records; --", "\"", "'", "?1", "%", "_",
        "1", "01", "1.0", "1e0", "-0", "0x1", "NULL", "true", " lead", "trail ", "\ttab", "line\nfeed", "\r\n", "\u{7F}", "\u{2028}",
      ]
      for (number, key) in keys.enumerated() { try trial.commit(.put(key, "\(number)")) }
      try trial.reopen()
      try trial.commit([keys.map { .delete($0) }])
      try trial.reopen()
    },
    BackendRequirement("longKeysAndEmojiAreKept", "keys of 1 KiB and of any plane are kept whole") { trial in
      try trial.open()
      let long = String(repeating: "k", count: 1023)
      let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}"
      try trial.commit(
        .put(long + "1", "1"), .put(long + "2", "2"), .put(family, "3"), .put("\u{1F468}", "4"),
        .put(String(repeating: "\u{1F980}", count: 256)), .put("\u{10FFFF}"), .put("\u{FFFF}"), .put("\u{FEFF}bom"), .put("bom"))
      try trial.reopen()
      try trial.commit(.delete(long + "1"), .delete("\u{FEFF}bom"))
      try trial.reopen()
    },
  ]
}
