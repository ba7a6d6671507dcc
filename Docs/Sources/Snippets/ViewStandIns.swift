#if !canImport(SwiftUI)
  // Where there is no SwiftUI, the little of it that the first screen of the README uses, so that it is compiled here too.

  @MainActor protocol View {
    associatedtype Body: View
    var body: Body { get }
  }

  @propertyWrapper struct State<Value> {
    var wrappedValue: Value
  }

  struct Text: View {
    let text: String
    var body: Text { self }

    init(_ text: String) { self.text = text }
  }

  struct List<Row: View>: View {
    let rows: [Row]
    var body: List<Row> { self }

    init<Element>(_ elements: [Element], row: (Element) -> Row) { rows = elements.map(row) }
  }
#endif
