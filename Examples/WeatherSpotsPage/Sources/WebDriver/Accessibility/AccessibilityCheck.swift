/// A look at the page as it is now, for faults that keep people out.
///
/// It does not look into frames and shadow roots. Each finding is a sentence that begins with a selector.
struct AccessibilityCheck: Sendable {
  let browser: Browser

  init(_ browser: Browser) { self.browser = browser }

  /// Returns all findings; the focus moves through the page for that.
  func findings() async throws -> [String] {
    try await structure() + names() + contrast() + focusOrder()
  }

  /// Returns what the structure of the page lacks: language, title, headings, landmarks, texts of pictures, ids.
  func structure() async throws -> [String] { try await list(Self.structureScript) }

  /// Returns the texts whose contrast is too low, or cannot be told.
  ///
  /// The background of a text is that of its ancestors, and in a drawing of the shapes below it; that of another element, which only lies
  /// there, is not seen.
  func contrast() async throws -> [String] { try await list(Self.contrastScript) }

  /// Returns the interactive elements without a name, or with a role that nobody would use.
  func names() async throws -> [String] {
    var findings: [String] = []
    for found in try await browser.script(Self.helpers + Self.interactiveScript).array {
      let element = try BrowserElement(browser, found["element"])
      let selector = found["selector"].text ?? ""
      let (role, name) = (try await element.role(), try await element.name())
      if Self.passiveRoles.contains(role) { findings.append("\(selector): interactive, with the role \"\(role)\"") }
      if name.allSatisfy(\.isWhitespace) { findings.append("\(selector): \(role) without an accessible name") }
    }
    return findings
  }

  private func list(_ script: String) async throws -> [String] {
    try await browser.script(Self.helpers + script).array.compactMap(\.text)
  }

  /// The roles that do not say that there is something to do.
  private static let passiveRoles: Set = [
    "", "generic", "none", "presentation", "paragraph", "heading", "image", "img", "list", "listitem", "StaticText", "LabelText",
  ]

  private static let interactiveScript = #"""
    const css = `a[href], area[href], button, input:not([type=hidden]), select, textarea, summary, audio[controls], video[controls],
      [contenteditable]:not([contenteditable=false]), [onclick], [tabindex]:not([tabindex^="-"]),
      ${['button', 'link', 'checkbox', 'radio', 'switch', 'tab', 'textbox', 'searchbox', 'combobox', 'listbox', 'option', 'slider',
        'spinbutton', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'treeitem'].map(role => `[role=${role}]`).join(', ')}`;
    // What a modal dialog covers is not there for anybody.
    const root = [...document.querySelectorAll('dialog:modal')].at(-1) ?? document;
    return [...root.querySelectorAll(css)].filter(element => shown(element) && !element.closest('[inert]'))
      .map(element => ({ element, selector: selector(element) }));
    """#

  /// The functions that the scripts share.
  static let helpers = #"""
    const shown = element => element.checkVisibility({ visibilityProperty: true });

    // A selector that a person finds the element by: not longer than needed, and not always of one element alone.
    const selector = element => {
      const parts = [];
      for (let each = element; each && parts.length < 4; each = each.parentElement) {
        const twins = [...(each.parentElement?.children ?? [])].filter(other => other.localName === each.localName);
        const place = twins.length > 1 ? `:nth-of-type(${twins.indexOf(each) + 1})` : '';
        parts.unshift(each.id ? `#${CSS.escape(each.id)}` : each.localName + place);
        if (each.id || each === document.body) break;
      }
      return parts.join(' > ');
    };

    // What is on its way to a colour or a frame counts as having arrived.
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();

    """#
}
