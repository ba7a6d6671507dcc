import Foundation
import FuzzTargets

/// The program: it runs the target that the environment names, since libFuzzer starts it anew with arguments of its own.
#if !LARDER_FUZZING
  @main
#endif
enum LarderFuzz {
  /// The target that the environment names.
  static let target = FuzzTarget.named(ProcessInfo.processInfo.environment["LARDER_FUZZ_TARGET"] ?? "")

  /// Tries each file of the arguments once; lists the targets where none is named.
  static func main() {
    guard target != nil else { return print(FuzzTarget.all.map { "\($0.name) \($0.maximumLength)" }.joined(separator: "\n")) }
    for path in CommandLine.arguments.dropFirst() {
      guard let contents = FileManager.default.contents(atPath: path) else {
        print("larder-fuzz: expected a file that can be read, found none at \(path)")
        exit(1)
      }
      contents.withUnsafeBytes { tryInput($0) }
    }
  }

  /// Tries one input, and ends the process where a promise is broken: libFuzzer then keeps the input.
  static func tryInput(_ bytes: UnsafeRawBufferPointer) {
    do {
      try target?.run(bytes)
    } catch {
      print("larder-fuzz: a promise is broken: \(error)")
      fflush(nil)
      abort()
    }
  }
}

#if LARDER_FUZZING
  /// Tries the input that libFuzzer has made.
  @_cdecl("LLVMFuzzerTestOneInput")
  func fuzzerTestOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    LarderFuzz.tryInput(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
  }
#endif
