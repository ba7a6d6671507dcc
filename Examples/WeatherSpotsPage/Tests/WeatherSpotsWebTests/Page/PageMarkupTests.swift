import Foundation
import Testing

@testable import WeatherSpotsWeb

/// The page's HTML, judged by HTML Tidy where that is installed.
@Suite struct PageMarkupTests {
  private static let tidy = ["/usr/bin/tidy", "/opt/homebrew/bin/tidy"].first { FileManager.default.isExecutableFile(atPath: $0) }

  @Test(.enabled("HTML Tidy is not installed (apt-get install tidy)") { tidy != nil })
  func theHTMLIsValid() throws {
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(filePath: try #require(Self.tidy))
    let page = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../Sources/WeatherSpotsWeb/Page/index.html")
    process.arguments = ["-quiet", "-errors", "-utf8", page.standardizedFileURL.path]
    process.standardError = output
    try process.run()
    let found = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(found == "")
    #expect(process.terminationStatus == 0)
  }
}
