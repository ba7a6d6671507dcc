package import Foundation

extension ContiguousBytes {
  /// Lends the bytes to a closure with a typed error, which `withUnsafeBytes` cannot pass on.
  package func lending<R>(_ body: (UnsafeRawBufferPointer) throws(RepositoryError) -> R) throws(RepositoryError) -> R {
    let result: Result<R, RepositoryError> = withUnsafeBytes { bytes in
      do throws(RepositoryError) { return .success(try body(bytes)) } catch { return .failure(error) }
    }
    return try result.get()
  }
}
