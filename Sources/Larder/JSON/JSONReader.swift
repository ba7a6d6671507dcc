internal import Foundation

/// A reader of JSON text that keeps numbers as they are written, which Foundation's readers do not.
struct JSONReader {
  private let text: DecodingText

  /// Returns the value of a text.
  /// - Throws: `.decodingFailed` for a text that is not one JSON value, that nests deeper than a record may, or that has an object with two
  ///   members of one name: which of them would be meant is not known.
  static func value(of json: Data) throws(RepositoryError) -> JSONValue {
    let limit = StoreOptions.Limits.maximumDepth
    return try json.lending { bytes throws(RepositoryError) in
      var scan = JSONScan(bytes, depthLimit: limit)
      switch scan.run() {
      case .valid: return try JSONReader(text: DecodingText(bytes, scan.entries)).value(at: 0)
      case .malformed(let offset):
        throw RepositoryError(.decodingFailed, "expected JSON, found something else", offset: UInt64(offset))
      case .tooDeep: throw RepositoryError(.decodingFailed, "expected JSON nested at most \(limit) deep, found a deeper one")
      }
    }
  }

  private func value(at entry: Int) throws(RepositoryError) -> JSONValue {
    switch text.entries[entry].kind {
    case .null: .null
    case .true: .bool(true)
    case .false: .bool(false)
    case .number: .number(JSONNumber(checked: text.text(at: entry)))
    case .string: .string(text.text(at: entry))
    case .array: .array(try elements(of: entry))
    case .object: .object(try members(of: entry))
    }
  }

  private func elements(of array: Int) throws(RepositoryError) -> [JSONValue] {
    var elements: [JSONValue] = []
    var at = array + 1
    while at < text.entries[array].next {
      elements.append(try value(at: at))
      at = Int(text.entries[at].next)
    }
    return elements
  }

  private func members(of object: Int) throws(RepositoryError) -> JSONObject {
    var members = JSONObject()
    for entry in text.names(of: object) {
      let name = text.text(at: entry)
      guard members[name] == nil else {
        // The offset of a string is behind its quotation mark.
        throw RepositoryError(
          .decodingFailed, "expected members with different names, found two with one name", offset: UInt64(text.entries[entry].offset) - 1)
      }
      members[name] = try value(at: entry + 1)
    }
    return members
  }
}
