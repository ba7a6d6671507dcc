import Foundation
import Testing

/// The commands that make certificates and use them.
enum Command {
  static let (openssl, curl, clang) = (path("openssl"), path("curl"), path("clang"))

  private static func path(_ name: String) -> String? {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":").map(String.init) ?? []
    return (["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"] + folders).map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Runs a command, and returns how it ended and what it printed.
  static func run(_ path: String?, _ arguments: [String]) async throws -> (status: Int32, output: String) {
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: path ?? "")
    process.arguments = arguments
    (process.standardOutput, process.standardError) = (output, FileHandle.nullDevice)
    let ended = AsyncStream<Int32> { continuation in
      process.terminationHandler = {
        continuation.yield($0.terminationStatus)
        continuation.finish()
      }
    }
    try process.run()
    var status: Int32 = -1
    for await end in ended { status = end }
    return (status, String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self))
  }
}

/// Certificates of tests, which nobody trusts who is not told to.
enum TestCertificate {
  /// Makes a certificate for localhost, and its key.
  static func make(_ certificate: String, _ key: String) async throws {
    let made = try await Command.run(
      Command.openssl,
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", "/CN=localhost",
        "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
      ])
    #expect(made.status == 0)
  }

  /// Stands before libcurl's own function, and tells each transfer which certificates to trust.
  private static let trust = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <stdlib.h>
    enum { CAINFO = 10065 };
    void *curl_easy_init(void) {
      void *(*init)(void) = (void *(*)(void))dlsym(RTLD_NEXT, "curl_easy_init");
      int (*set)(void *, int, ...) = (int (*)(void *, int, ...))dlsym(RTLD_NEXT, "curl_easy_setopt");
      void *handle = init();
      if (handle && getenv("LARDER_TEST_CERTIFICATE")) set(handle, CAINFO, getenv("LARDER_TEST_CERTIFICATE"));
      return handle;
    }

    """

  /// Returns the environment in which URLSession trusts a certificate.
  ///
  /// On Linux, no variable does so: Foundation reads one on Android alone, and libcurl has the certificates of the system.
  static func environment(trusting certificate: String, in directory: TemporaryDirectory) async throws -> [String: String] {
    let (source, library) = (directory.file("trust.c"), directory.file("trust.so"))
    try trust.write(toFile: source, atomically: true, encoding: .utf8)
    let made = try await Command.run(Command.clang, ["-shared", "-fPIC", "-o", library, source])
    try #require(made.status == 0)
    return ["LD_PRELOAD": library, "LARDER_TEST_CERTIFICATE": certificate]
  }
}
