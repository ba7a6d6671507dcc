internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Rules about collections and keys.
  static let addressing: [BackendRequirement] = [
    BackendRequirement("collectionsAreApart", "one key in two collections is two records, and each can be emptied alone") { trial in
      try trial.open()
      try trial.commit(.put("a", "1", in: "ones"), .put("a", "2", in: "twos"), .put("b", "3", in: "twos"))
      try trial.reopen()
      try trial.commit(.delete("a", in: "twos"), .delete("b", in: "twos"))
      try trial.reopen()
      // A backend that forgets the collection "twos", which holds only tombstones now, or gives its number to another collection, would
      // lose or misplace the record that is written next.
      try trial.commit(.put("a", "4", in: "twos"))
      try trial.reopen()
    },
    BackendRequirement(
      "collectionNamesAreApart", "names that a schema may have work; the odd ones are refused with unsupported rather than merged"
    ) { trial in
      try trial.open()
      // Names like "a.b" and "a-b" differ only in characters that a backend may replace to make a file or table name. "select" is a
      // word of SQL, so a table of this name must be quoted.
      let plain = ["a", "aa", "_a", "0", "1.5", "a.b", "a-b", "a_b", "a..", "_", "select", "meta", String(repeating: "n", count: 64)]
      for (number, name) in plain.enumerated() { try trial.commit(.put("k", "\(number)", in: name), .put("only \(number)", in: name)) }
      var accepted = plain
      // Each name in `odd` differs from another name only in case, or is reserved by SQLite, Larder or a file system.
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
      // If a backend merged two names of collections, the deletions of "k" in both collections would leave one tombstone instead of two,
      // and the comparison would find one missing.
      try trial.commit([accepted.map { .delete("k", in: $0) }])
      try trial.reopen()
    },
    BackendRequirement("keysWithNULAreApart", "keys may hold NUL, and what follows it counts") { trial in
      try trial.open()
      // A key that is passed to C as a string ends at its first NUL, so each of the six keys of the first batch would become "a" or the
      // empty key.
      try trial.commit(.put("a", "0"), .put("a\0one", "1"), .put("a\0two", "2"), .put("a\0", "3"), .put("\0", "4"), .put("\0\0", "5"))
      try trial.reopen()
      try trial.commit(.put("a\0one", "changed"), .delete("a\0two"), .delete("\0"))
      try trial.reopen()
    },
    BackendRequirement("keysAreComparedByBytes", "keys that Unicode calls equivalent, and cases, are different keys") { trial in
      try trial.open()
      // Some of the keys in `spellings` are equal as Swift strings, so a dictionary of strings would merge them. Other keys are equal after
      // a compatibility or case mapping, which a collation may apply.
      let spellings = ["caf\u{E9}", "cafe\u{301}", "CAF\u{C9}", "\u{212B}", "\u{C5}", "A\u{30A}", "\u{FB01}", "fi", "ss", "\u{DF}"]
      for (number, key) in spellings.enumerated() { try trial.commit(.put(key, "\(number)")) }
      try trial.reopen()
      try trial.commit(.delete("caf\u{E9}"), .put("cafe\u{301}", "changed"))
      try trial.reopen()
    },
    BackendRequirement("theEmptyKeyIsAKey", "the empty key works like any other") { trial in
      try trial.open()
      // A backend may bind the empty key as NULL in SQL, or trim the key " " to the empty key.
      try trial.commit(.put("", "1"), .put(" ", "2"))
      try trial.reopen()
      try trial.commit(.delete(""))
      try trial.reopen()
    },
    BackendRequirement("keysAreNoPaths", "keys that look like paths, queries or numbers are only keys") { trial in
      try trial.open()
      // A backend may use a key as a path, in a pattern or in SQL. An SQL column with numeric affinity would turn "1", "01" and "1.0" into
      // equal numbers.
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
      // The two long keys have 1,024 bytes, the default limit of a key, and differ only in the last byte.
      let long = String(repeating: "k", count: 1023)
      let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}"
      try trial.commit(
        .put(long + "1", "1"), .put(long + "2", "2"), .put(family, "3"), .put("\u{1F468}", "4"),
        // The remaining keys are 256 scalars of four bytes, the last scalar of Unicode, a noncharacter, and a text with and without a byte
        // order mark. A decoder that drops the byte order mark would turn the two texts into one key.
        .put(String(repeating: "\u{1F980}", count: 256)), .put("\u{10FFFF}"), .put("\u{FFFF}"), .put("\u{FEFF}bom"), .put("bom"))
      try trial.reopen()
      try trial.commit(.delete(long + "1"), .delete("\u{FEFF}bom"))
      try trial.reopen()
    },
  ]
}

extension BackendRequirement {
  /// Rules about the bytes of values.
  static let keeping: [BackendRequirement] = [
    BackendRequirement("valuesAreKeptByteForByte", "a value comes back as its bytes, not as other JSON of one meaning") { trial in
      try trial.open()
      // A backend that decodes and encodes a value may change the order of members, the spaces, and the spelling of numbers and escapes,
      // and may drop a repeated member of an object.
      let values = [
        #"{"b":1,"a":2}"#, #"{ "spaced" :  [ 1 , 2 ] }"#, "{}", "[]", "null", "true", "0", "-0", "-0.0", "1.50", "1e2",
        "12345678901234567890123", #""""#, #""text""#,
        #""\u00e9 \/ \u0000 \" \\ \n \ud83e\udd80""#, "\"caf\u{E9} cafe\u{301} \u{1F980} \u{7F} \u{2028}\"",
        #"{"a":1,"a":2}"#, #"[[[[[[[["deep"]]]]]]]]"#, "{\"tab\":\t1}", "\"\u{FEFF}\"",
      ]
      for (number, value) in values.enumerated() { try trial.commit(.put("\(number)", value)) }
      try trial.reopen()
    },
    BackendRequirement("aMebibyteIsKept", "a value of 1 MiB is kept, beside small ones") { trial in
      try trial.open()
      let text = "\"" + String(repeating: "0123456789abcdef", count: 65_536) + "\""
      try trial.commit(.put("before"), .put("large", text), .put("after"))
      try trial.reopen()
      // The large value shrinks and another record gets a large value, so that a backend may write the new value into the freed space.
      try trial.commit(.put("large", "1"), .put("other", text))
      try trial.reopen()
    },
    BackendRequirement("tenThousandRecordsAreKept", "10,000 records are kept, in large batches and small ones") { trial in
      try trial.open()
      for batch in 0..<10 { try trial.commit([(0..<1_000).map { .put("\(batch)-\($0)", #"{"n":\#($0)}"#) }]) }
      try trial.reopen()
      // Two batches of 500 records have opposite shapes: the first has 500 commits of one record each, the second has one commit.
      try trial.commit((0..<500).map { [.put("3-\($0)", #"{"changed":true}"#)] })
      try trial.commit([(0..<500).map { .delete("7-\($0)") }])
      try trial.backend.checkpoint()
      try trial.reopen()
    },
  ]
}
