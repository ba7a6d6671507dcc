#if !canImport(SwiftUI)
  import Foundation

  // Stand-ins for the part of SwiftUI that the guides use. They let the guides' views compile on systems without it. Isolation and
  // sendability are those of SwiftUI's declarations. Nothing is drawn.

  @MainActor protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
  }

  @MainActor protocol Scene {}

  @MainActor protocol App {
    associatedtype Body: Scene
    var body: Body { get }
  }

  @MainActor struct WindowGroup: Scene {
    init(@ViewBuilder content: @escaping () -> some View) {}
  }

  /// The view that every stand-in draws.
  @MainActor struct Drawing: View {
    var body: Drawing { self }
  }

  @MainActor @resultBuilder enum ViewBuilder {
    static func buildBlock(_ views: any View...) -> Drawing { Drawing() }
    static func buildOptional(_ view: Drawing?) -> Drawing { Drawing() }
    static func buildEither(first view: Drawing) -> Drawing { view }
    static func buildEither(second view: Drawing) -> Drawing { view }
  }

  @propertyWrapper struct State<Value> {
    private final class Box {
      var value: Value
      init(_ value: Value) { self.value = value }
    }
    private let box: Box

    init(wrappedValue: Value) { box = Box(wrappedValue) }
    init(initialValue: Value) { box = Box(initialValue) }

    var wrappedValue: Value {
      get { box.value }
      nonmutating set { box.value = newValue }
    }
  }

  @propertyWrapper struct Environment<Value> {
    private let keyPath: KeyPath<EnvironmentValues, Value>
    init(_ keyPath: KeyPath<EnvironmentValues, Value>) { self.keyPath = keyPath }
    var wrappedValue: Value { EnvironmentValues()[keyPath: keyPath] }
  }

  struct EnvironmentValues: Sendable {
    var scenePhase: ScenePhase { .active }
  }

  enum ScenePhase: Sendable { case active, inactive, background }

  extension View {
    func onChange<Value: Equatable>(of value: Value, _ action: @escaping (Value, Value) -> Void) -> some View { Drawing() }
  }

  @MainActor struct Text: View {
    init(_ text: String) {}
    var body: Drawing { Drawing() }
  }

  @MainActor struct ProgressView: View {
    var body: Drawing { Drawing() }
  }

  @MainActor struct LabeledContent: View {
    init<Format: FormatStyle>(_ title: String, value: Format.FormatInput, format: Format) where Format.FormatOutput == String {}
    var body: Drawing { Drawing() }
  }

  @MainActor struct Button: View {
    init(_ title: String, action: @escaping @MainActor () -> Void) {}
    var body: Drawing { Drawing() }
  }

  @MainActor struct List: View {
    init<Item: Identifiable>(_ items: [Item], @ViewBuilder row: @escaping (Item) -> some View) {}
    var body: Drawing { Drawing() }
  }

  @MainActor struct VStack: View {
    init(@ViewBuilder content: () -> some View) {}
    var body: Drawing { Drawing() }
  }

  extension View {
    func overlay(@ViewBuilder content: () -> some View) -> some View { Drawing() }
    func task(@_inheritActorContext _ action: @escaping @Sendable () async -> Void) -> some View { Drawing() }
  }
#endif
