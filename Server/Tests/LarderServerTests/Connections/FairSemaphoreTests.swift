import Dispatch
import Synchronization
import Testing

@testable import BoundedHTTP
@testable import LarderServer

/// The number of callers that are inside, and the largest number that ever were.
final class Attendance: Sendable {
  private let counts = Mutex((now: 0, most: 0))
  var now: Int { counts.withLock { $0.now } }
  var most: Int { counts.withLock { $0.most } }
  func enter() { counts.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) } }
  func leave() { counts.withLock { $0.now -= 1 } }
}

/// The order in which callers get permits.
@Suite(.timeLimit(.minutes(15))) struct FairSemaphoreTests {
  /// A piece of work that begins when it gets a permit, and ends when the test calls `end`.
  private struct Work: Sendable {
    let begun: AsyncStream<Void>
    let end: @Sendable () -> Void

    static func start(_ permits: FairSemaphore, _ identity: String?, _ began: @escaping @Sendable () -> Void = {}) -> Work {
      let (begun, begin) = AsyncStream.makeStream(of: Void.self)
      let (gate, open) = AsyncStream.makeStream(of: Void.self)
      Task {
        await permits.withPermit(for: identity) {
          began()
          begin.finish()
          for await _ in gate {}
        }
      }
      return Work(begun: begun) { open.finish() }
    }

    func hasBegun() async { for await _ in begun {} }
  }

  @Test func anIdentityWithMuchToDoLeavesPermitsToOthers() async {
    let permits = FairSemaphore(total: 2, perIdentity: 1)
    let begun = Attendance()
    let first = Work.start(permits, "ann")
    await first.hasBegun()
    let more = (0..<20).map { _ in Work.start(permits, "ann") { begun.enter() } }
    while permits.waitingCount < more.count, !Task.isCancelled { await Task.yield() }
    // One permit is free, and none of these calls may have it.
    let other = Work.start(permits, "bob")
    await other.hasBegun()
    #expect(begun.now == 0)
    other.end()
    first.end()
    for work in more { work.end() }
    for work in more { await work.hasBegun() }
  }

  @Test func waitingIdentitiesAreAdmittedInRotation() async {
    let permits = FairSemaphore(total: 1, perIdentity: 1)
    let order = Mutex<[String]>([])
    let first = Work.start(permits, "ann")
    await first.hasBegun()
    var waiting: [Work] = []
    for name in ["ann", "ann", "ann", "bob", "cleo", "bob"] {
      waiting.append(Work.start(permits, name) { order.withLock { $0.append(name) } })
      while permits.waitingCount < waiting.count, !Task.isCancelled { await Task.yield() }
    }
    for work in [first] + waiting { work.end() }
    for work in waiting { await work.hasBegun() }
    #expect(order.withLock { $0 } == ["ann", "bob", "cleo", "ann", "bob", "ann"])
  }

  @Test func withoutIdentitiesAllPermitsAreEverybodys() async {
    let permits = FairSemaphore(total: 3, perIdentity: 1)
    let works = (0..<3).map { _ in Work.start(permits, nil) }
    for work in works { await work.hasBegun() }
    for work in works { work.end() }
  }

  @Test func largeWorkOfOneIdentityIsDoneOneAfterAnother() async {
    let large = LargeWork(threads: 2)
    let (begun, begin) = AsyncStream.makeStream(of: Void.self)
    let gate = DispatchSemaphore(value: 0)
    let running = Attendance()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<10 {
        group.addTask {
          await large.run("ann") {
            running.enter()
            begin.yield()
            gate.wait()
            running.leave()
          }
        }
      }
      _ = await begun.first { _ in true }
      // What is in the way of ann's is in nobody else's, and holds up no task.
      #expect(await large.run("bob") { 1 } == 1)
      #expect(await large.run(nil) { 2 } == 2)
      for _ in 0..<10 { gate.signal() }
    }
    #expect(running.most == 1)
  }
}
