// ManualPages/ writes the pages of the manual, one for each command, from the description that the tool prints of its commands.
// Invariant: the same description gives the same bytes. Called by Scripts/manual.sh, and by the test that compares the pages.

internal import Foundation

/// Program `manual-pages DIRECTORY`, which reads the output of `larder --experimental-dump-help` from its standard input.
@main
enum ManualPages {
  static func main() throws {
    guard CommandLine.arguments.count == 2, let directory = CommandLine.arguments.last else {
      try FileHandle.standardError.write(contentsOf: Data("expected one argument: the directory for the pages\n".utf8))
      // `EX_USAGE` of sysexits(3), as swift-argument-parser uses for wrong arguments.
      exit(64)
    }
    let input = try FileHandle.standardInput.readToEnd() ?? Data()
    let command = try JSONDecoder().decode(HelpDump.self, from: input).command
    for page in ManualPage.all(of: command) {
      let file = URL(fileURLWithPath: directory, isDirectory: true).appending(path: page.fileName)
      guard FileManager.default.createFile(atPath: file.path, contents: Data(page.text.utf8)) else {
        throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
      }
    }
  }
}
