internal import Foundation
internal import Larder

extension BackendRequirement {
  /// Values.
  static let keeping: [BackendRequirement] = [
    BackendRequirement("valuesAreKeptByteForByte", "a value comes back as its bytes, not as other JSON of one meaning") { trial in
      try trial.open()
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
      try trial.commit(.put("large", "1"), .put("other", text))
      try trial.reopen()
    },
    BackendRequirement("tenThousandRecordsAreKept", "10,000 records are kept, in large batches and small ones") { trial in
      try trial.open()
      for batch in 0..<10 { try trial.commit([(0..<1_000).map { .put("\(batch)-\($0)", #"{"n":\#($0)}"#) }]) }
      try trial.reopen()
      try trial.commit((0..<500).map { [.put("3-\($0)", #"{"changed":true}"#)] })
      try trial.commit([(0..<500).map { .delete("7-\($0)") }])
      try trial.backend.checkpoint()
      try trial.reopen()
    },
  ]
}
