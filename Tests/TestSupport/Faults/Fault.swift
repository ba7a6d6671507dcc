internal import Foundation
package import Larder

/// A call of a program, found again in every run: the n-th of its kind on the file with that name.
package struct FaultPoint: Hashable, Sendable, CustomStringConvertible {
  package let call: SeamCall
  /// The call with the name of its file, and how the file was opened.
  package let key: String
  /// The number among the calls with this key, from 1.
  package let number: Int
  /// The place in the program that makes it, where it was noted; of no account for finding it again.
  package var site: UInt?

  package static func == (left: FaultPoint, right: FaultPoint) -> Bool { left.number == right.number && left.key == right.key }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(key)
    hasher.combine(number)
  }

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
  private static let names = ["ENOSPC", "EDQUOT", "EIO", "EINTR", "EMFILE", "EACCES", "EPERM", "EROFS"]

  /// Returns the faults that a call is given.
  package static func all(of call: SeamCall, isPermanent: Bool = false) -> [Fault] {
    var faults = errorNumbers.map { Fault($0, isPermanent: isPermanent) }
    switch call {
    case .write, .allocate: faults += [ENOSPC, EIO].map { Fault($0, .part, isPermanent: isPermanent) }
    case .read: faults.append(Fault(0, .shortRead, isPermanent: isPermanent))
    default: break
    }
    return faults
  }

  /// Whether the state of the disk that the fault shows at one call fails another one too.
  func goesOn(at call: SeamCall, from first: SeamCall) -> Bool {
    effect == .shortRead ? call == .read : call.follows(first, errorNumber)
  }

  /// The fault of the calls that come later, with nothing done.
  var later: Fault { Fault(errorNumber, effect == .shortRead ? .shortRead : .nothing) }

  /// The name of the fault in the table of sites, in one word; whether it is permanent is not a part of it.
  package var name: String {
    if effect == .shortRead { return "short" }
    let number = zip(Self.errorNumbers, Self.names).first { $0.0 == errorNumber }?.1 ?? "\(errorNumber)"
    return effect == .nothing ? number : "\(number)/\(effect)"
  }

  /// The code of the error that a failing call throws.
  package var code: RepositoryError.Code { RepositoryError.simulated("", errorNumber: errorNumber, at: "").code }

  package var description: String {
    if effect == .shortRead { return "a short read\(isPermanent ? ", for ever" : "")" }
    return "\(String(cString: strerror(errorNumber)))\(effect == .nothing ? "" : ", \(effect) done")\(isPermanent ? ", for ever" : "")"
  }
}
