internal import ArgumentParser
internal import LarderServer
internal import Logging

/// Options of `serve` for HTTP over TLS.
struct TLSOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The certificate in PEM, with those that lead to its root behind it.", valueName: "file"))
  var tlsCertificate: String?
  @Option(help: ArgumentHelp("The private key of the certificate in PEM.", valueName: "file")) var tlsKey: String?

  func check() throws {
    guard (tlsCertificate == nil) == (tlsKey == nil) else {
      throw ValidationError("Expected --tls-certificate and --tls-key together.")
    }
  }

  /// Reads the files of the certificate, and returns `nil` for HTTP without TLS.
  ///
  /// - Throws: ``ServerError``.
  func files(_ logger: Logger) throws(ServerError) -> TLSFiles? {
    guard let tlsCertificate, let tlsKey else { return nil }
    return try TLSFiles(certificate: tlsCertificate, key: tlsKey, logger: logger)
  }
}
