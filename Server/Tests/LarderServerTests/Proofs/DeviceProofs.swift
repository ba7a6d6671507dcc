import Foundation
import Larder
import LarderSync
import Testing

extension PostgresProofs {
  /// Real engines over a bad network to two processes.
  @Suite struct DeviceProofs {
    @Test func devicesWithWrongClocksOnABadNetworkEndEqual() async throws {
      let uri = try await PostgresCluster.shared().freshDatabase()
      try await ServerGroup.run(2, on: uri) { group in
        let proxies = try group.processes.map { try ChaosProxy(to: $0.port) }
        defer { for proxy in proxies { proxy.close() } }
        var devices = [try await ProofDevice(proxies[0].base, years: 10), try await ProofDevice(proxies[1].base, years: -10)]
        for device in devices { try await device.sync.exchange() }
        var (expected, at, rounds) = (0, 1, 0)
        let step = count(61, 1)
        while true {
          for device in devices { try await device.increment("shared") }
          expected += 2
          for proxy in proxies { proxy.set(.init(cut: at)) }
          for device in devices { try await device.tryExchange() }
          let longest = proxies.map(\.passed).max() ?? 0
          for proxy in proxies { proxy.set(.init(delay: rounds % 10 == 0 ? 0.02 : 0, repeats: rounds % 7 == 0)) }
          // Each device goes to the other process from time to time.
          if rounds % 5 == 4 {
            for (number, proxy) in proxies.reversed().enumerated() { devices[number] = try await devices[number].moved(to: proxy.base) }
          } else if rounds % 5 == 0 {
            for (number, proxy) in proxies.enumerated() { devices[number] = try await devices[number].moved(to: proxy.base) }
          }
          rounds += 1
          if at > longest { break }
          at += step
        }
        for proxy in proxies { proxy.set(.init()) }
        for device in devices + devices + devices { try await device.sync.exchange() }
        for device in devices { #expect(try await device.all() == [ProofNote(id: "shared", count: expected)]) }
        report("devices: \(rounds) cuts, one each \(step) bytes, clocks 20 years apart: counter \(expected) on both")
      }
    }
  }
}
