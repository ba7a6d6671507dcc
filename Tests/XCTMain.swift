import Testing

/// Runs the tests of a package in place of the program that SwiftPM writes on Linux, where it finds this file beside the tests.
///
/// SwiftPM's own program lists the tests of XCTest, of which there are none here, and reads them from the index store. Without it, compiling
/// needs no index store, which takes an eighth of its time. See Scripts/flags.sh.
@main struct TestProgram {
  static func main() async {
    // `swift test` runs this once more for XCTest, and must find nothing then.
    if CommandLine.arguments.contains("swift-testing") { await Testing.__swiftPMEntryPoint() as Never }
  }
}
