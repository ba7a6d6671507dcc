extension AccessibilityCheck {
  /// Returns what is wrong with the way of the focus: what Tab does not reach, reaches elsewhere than where it stands, or reaches unseen.
  ///
  /// In a modal dialog, it is the way through that.
  func focusOrder() async throws -> [String] {
    let expected = try await browser.script(Self.helpers + Self.focusStart).array.compactMap(\.text)
    var (visited, findings): ([Int], [String]) = ([], [])
    var (strangers, repeated, ends) = (0, 0, 0)
    // Fields of dates and players have several stops inside.
    while repeated < 20, visited.count <= 2 * expected.count, strangers <= 100 {
      try await browser.press(.tab)
      let step = try await browser.script(Self.helpers + Self.focusStep)
      guard let index = step["index"].integer else {
        // Behind the last one the way begins anew, then also with what has a place of its own in the order.
        ends += 1
        if ends == 2 { break } else { continue }
      }
      if index < 0 {
        strangers += 1
        if let finding = step["finding"].text { findings.append(finding) }
      } else if index == visited.last {
        if visited.count == 1, expected.count == 1 { break }
        repeated += 1
      } else if index == visited.first {
        break
      } else {
        (visited, repeated) = (visited + [index], 0)
        if let finding = step["finding"].text { findings.append(finding) }
      }
    }
    _ = try await browser.script("delete window.focusOrderCheck; document.activeElement?.blur()")
    if repeated >= 20, let last = visited.last { findings.append("\(expected[last]): Tab does not leave it") }
    let missing = expected.indices.filter { !visited.contains($0) }
    findings += missing.map { "\(expected[$0]): Tab does not reach it" }
    for index in Set(visited).sorted() where visited.count(where: { $0 == index }) > 1 {
      findings.append("\(expected[index]): Tab reaches it more than once")
    }
    for (before, index) in zip(visited, visited.dropFirst()) where index < before {
      findings.append("\(expected[index]): Tab reaches it after \(expected[before]), which stands behind it")
    }
    return findings
  }

  private static let focusStart = #"""
    document.activeElement?.blur();
    const root = [...document.querySelectorAll('dialog:modal')].at(-1) ?? document.body;
    const css = `a[href], area[href], button, input, select, textarea, summary, audio[controls], video[controls],
      [contenteditable], [tabindex]`;
    const list = [...root.querySelectorAll(css)].filter(element => {
      if (element.tabIndex < 0 || element.matches(':disabled') || element.closest('[inert]') || !shown(element)) return false;
      if (element.localName === 'summary') return element === element.parentElement.querySelector(':scope > summary');
      if (element.type !== 'radio' || element.checked) return true;
      // Of a group of radio buttons, Tab reaches the one that is chosen, or else the first.
      const isAlike = other => element.name && other.name === element.name && other.form === element.form && !other.disabled;
      const group = [...document.querySelectorAll('input[type=radio]')].filter(other => other === element || isAlike(other));
      return !group.some(other => other.checked) && group[0] === element;
    });
    // The focus may be drawn by what stands beside or around the element.
    const look = element => [element, element.parentElement, element.nextElementSibling, ...(element.labels ?? [])].map(each => {
      if (!each) return '';
      const style = getComputedStyle(each);
      const isDrawn = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 && !/, 0\)$/.test(style.outlineColor);
      return (isDrawn ? style.outline : 'none') + style.boxShadow;
    }).join();
    window.focusOrderCheck = { list, look, before: new Map(list.map(element => [element, look(element)])) };
    // From here Tab goes to the first one inside.
    const own = root.getAttribute('tabindex');
    root.tabIndex = -1;
    root.focus({ preventScroll: true });
    if (own === null) root.removeAttribute('tabindex'); else root.setAttribute('tabindex', own);
    return list.map(selector);
    """#

  private static let focusStep = #"""
    const { list, look, before } = window.focusOrderCheck;
    const element = document.activeElement;
    if (!element || element === document.body || element === document.documentElement) return { index: null };
    const index = list.indexOf(element);
    // Chromium lets Tab stop where there is something to scroll and nothing else to reach.
    const scrolls = element.scrollHeight > element.clientHeight || element.scrollWidth > element.clientWidth;
    let finding = null;
    if (index < 0) finding = scrolls || element.localName === 'iframe' ? null : `${selector(element)}: Tab reaches it, and should not`;
    else if (look(element) === before.get(element)) finding = `${selector(element)}: its focus is not visible`;
    return { index, finding };
    """#
}
