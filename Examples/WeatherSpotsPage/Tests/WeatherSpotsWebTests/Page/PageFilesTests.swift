import Foundation
import Testing

@testable import WeatherSpotsWeb

/// The page as it is compiled in: small, whole, and of nothing from elsewhere.
@Suite struct PageFilesTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../Sources/WeatherSpotsWeb/Page")

  private static func text(_ file: PageFile) -> String { String(decoding: file.data, as: UTF8.self) }

  @Test func everyFileOfTheFolderIsServed() throws {
    let files = try FileManager.default.subpathsOfDirectory(atPath: Self.folder.path).filter { $0.contains(".") }
    #expect(Set(files.map { $0 == "index.html" ? "/" : "/\($0)" }) == Set(PageFile.all.keys))
    for (path, file) in PageFile.all {
      let name = path == "/" ? "index.html" : String(path.dropFirst())
      let text = String(decoding: try Data(contentsOf: Self.folder.appending(path: name)), as: UTF8.self)
      guard file.type.hasPrefix("text/") else {
        #expect(text == Self.text(file), "\(name) was not compiled anew")
        continue
      }
      // Sent without the blanks that lines begin with, and without lines that are remarks.
      let lines = text.components(separatedBy: "\n").map { String($0.trimmingPrefix(while: { $0 == " " })) }.filter { !$0.hasPrefix("// ") }
      #expect(lines.joined(separator: "\n") == Self.text(file), "\(name) was not compiled anew")
    }
  }

  /// Of a text of several lines, blanks that lines begin with would be missing where it is shown.
  @Test func noTextHasSeveralLines() throws {
    for (path, file) in PageFile.all where path.hasSuffix(".js") {
      for line in Self.text(file).split(separator: "\n") { #expect(line.count { $0 == "`" }.isMultiple(of: 2), "\(path): \(line)") }
    }
  }

  @Test func thePageIsSmallAndTheGuideSaysHowSmall() throws {
    let page = PageFile.all.filter { $0.key != "/map/land.json" }.reduce(0) { $0 + $1.value.data.count }
    #expect(page <= 70_000)
    let readme = String(decoding: try Data(contentsOf: Self.folder.appending(path: "../../../README.md")), as: UTF8.self)
    #expect(readme.contains("at most 70,000 bytes"))
    #expect(PageFile.all["/map/land.json"].map { $0.data.count <= 37_000 } == true)
  }

  @Test func nothingIsFromElsewhere() throws {
    for (path, file) in PageFile.all where path != "/map/land.json" {
      let text = Self.text(file)
      for match in text.matches(of: /(https?:)?\/\/[a-z0-9.-]+\.[a-z]{2,}[^\s"'`)]*/) {
        // A name of a form, and an address to read at, are no requests.
        let isName = match.output.0.hasPrefix("http://www.w3.org/")
        let isLink = path == "/" && text[..<match.range.lowerBound].hasSuffix("<a href=\"")
        #expect(isName || isLink, "\(path): \(match.output.0)")
      }
      #expect(!text.contains("innerHTML") && !text.contains("eval(") && !text.contains("document.write"), "\(path)")
    }
  }

  @Test func everythingThatIsNamedIsThere() throws {
    for (path, file) in PageFile.all where path.hasSuffix(".js") || path == "/" {
      for match in Self.text(file).matches(of: /(?:from|import|href=|src=)\s*\(?["'](\.?\/[A-Za-z0-9_.\/-]+)["']/) {
        let url = try #require(URL(string: String(match.output.1), relativeTo: URL(string: "http://page\(path)")))
        #expect(PageFile.all[url.path] != nil, "\(path) names \(match.output.1)")
      }
    }
  }

  @Test func nothingIsInline() throws {
    let page = Self.text(try #require(PageFile.all["/"]))
    #expect(page.firstMatch(of: /<script(?![^>]*src=)/) == nil)
    #expect(page.firstMatch(of: /<style|\sstyle=|\son[a-z]+=/) == nil)
    #expect(page.contains("<html lang=\"en\""))
  }
}
