import Foundation

extension LoopbackRequest {
  /// Returns the answer, once all of it has been received.
  static func parsed(_ received: [UInt8]) throws(WebDriverFailure) -> Answer? {
    let limit = Data("\r\n\r\n".utf8)
    let data = Data(received)
    guard let gap = data.firstRange(of: limit) else { return nil }
    let lines = String(decoding: data[..<gap.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
    let words = lines[0].split(separator: " ")
    guard words.count > 1, words[0].hasPrefix("HTTP/"), let status = Int(words[1]) else {
      throw WebDriverFailure(code: .connection, message: "not an answer of HTTP: \(lines[0])")
    }
    let lengths = lines.dropFirst().compactMap { line -> Int? in
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2, parts[0].lowercased() == "content-length" else { return nil }
      return Int(parts[1].trimmingCharacters(in: .whitespaces))
    }
    guard let length = lengths.first else { throw WebDriverFailure(code: .connection, message: "an answer without a length") }
    guard data.count - gap.upperBound >= length else { return nil }
    return Answer(status: status, body: data[gap.upperBound..<(gap.upperBound + length)])
  }
}
