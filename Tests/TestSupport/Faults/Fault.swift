internal import Foundation
package import Larder

/// A call of a program, found again in every run: the n-th of its kind on the file with that name.
package struct FaultPoint: Hashable, Sendable, CustomStringConvertible {
  package let call: SeamCall
  /// The call with the name of its file, and how the file was opened.
  package let key: String
  /// The number among the calls with this key, from 1.
  package let number: Int

  package var description: String { "\(key) #\(number)" }
}

/// A failure of one call.
package struct Fault: Hashable, Sendable, CustomStringConvertible {
  /// The change that a failing call makes nevertheless.
  package enum Effect: Hashable, Sendable {
    case nothing
    /// A write leaves half of its bytes, an allocation half of its space.
    case part
    /// The call does its work before it fails.
    case everything
    /// A read gives half of the bytes, and no error.
    case shortRead
  }

  package var errorNumber: Int32
  package var effect = Effect.nothing
  /// Whether the disk stays in this state: later calls fail too, with nothing done.
  package var isPermanent = false

  package init(_ errorNumber: Int32, _ effect: Effect = .nothing, isPermanent: Bool = false) {
    self.errorNumber = errorNumber
    self.effect = effect
    self.isPermanent = isPermanent
  }

  /// The numbers that every call is failed with.
  package static let errorNumbers = [ENOSPC, EDQUOT, EIO, EINTR, EMFILE, EACCES, EPERM, EROFS]

  /// Returns the faults that a call is given.
  package static func all(of call: SeamCall, isPermanent: Bool = false) -> [Fault] {
    var faults = errorNumbers.map { Fault($0, isPermanent: isPermanent) }
    switch call {
    case .write, .allocate: faults += [ENOSPC, EIO].map { Fault($0, .part, isPermanent: isPermanent) }
    case .read: if !isPermanent { faults.append(Fault(0, .shortRead)) }
    default: break
    }
    return faults
  }

  /// Returns some of the faults of a call: over several calls every number is among them.
  package static func sample(of call: SeamCall, _ number: Int) -> [Fault] {
    var faults = [Fault([EIO, EINTR, EMFILE, EACCES, EPERM, EROFS][number % 6])]
    if call.isChange { faults.append(Fault([ENOSPC, EDQUOT][number / 6 % 2])) }
    switch call {
    case .write, .allocate: faults.append(Fault([ENOSPC, EIO][number % 2], .part))
    case .read: faults.append(Fault(0, .shortRead))
    default: break
    }
    return faults
  }

  /// The code of the error that a failing call throws.
  package var code: RepositoryError.Code { RepositoryError.simulated("", errorNumber, "").code }

  package var description: String {
    if effect == .shortRead { return "a short read" }
    return "\(String(cString: strerror(errorNumber)))\(effect == .nothing ? "" : ", \(effect) done")\(isPermanent ? ", for ever" : "")"
  }
}
