"""Accessibility faults of a page: those of axe-core, and those that it leaves to people.

Each finding is a sentence that begins with a selector.
"""
from axe_playwright_python.base import AXE_SCRIPT
from selenium.webdriver.common.keys import Keys

# Rules that axe-core has and does not run by itself.
RULES = {"focus-order-semantics": {"enabled": True}, "duplicate-id": {"enabled": True}}

HELPERS = """
    const shown = (element) => element.checkVisibility({ visibilityProperty: true });
    // A selector by which a person finds the element.
    const selector = (element) => {
      const parts = [];
      for (let each = element; each && parts.length < 4; each = each.parentElement) {
        const twins = [...(each.parentElement?.children ?? [])].filter((other) => other.localName === each.localName);
        const place = twins.length > 1 ? `:nth-of-type(${twins.indexOf(each) + 1})` : '';
        parts.unshift(each.id ? `#${CSS.escape(each.id)}` : each.localName + place);
        if (each.id || each === document.body) break;
      }
      return parts.join(' > ');
    };
"""

# The structure that axe-core does not ask for, and the contrast of texts that it does not measure: in drawings, in place of a value, and those
# that it lists as incomplete (`arguments[0]`), such as texts that are scrolled out of sight.
OWN_CHECKS = HELPERS + """
    const findings = [];
    const all = (css) => [...document.querySelectorAll(css)].filter(shown);
    const parts = 'article, aside, main, nav, section';
    for (const [css, name] of [['h1', 'h1'], ['header', 'header'], ['footer', 'footer']]) {
      const found = all(css).filter((element) => name === 'h1' || !element.closest(parts));
      if (found.length !== 1) findings.push(`html: ${found.length} ${name} instead of one`);
    }
    for (const drawing of all('svg:not([role], [aria-hidden=true], [aria-hidden=true] *)')) {
      const isPart = drawing.closest('button, a[href], [role=img]');
      const isNamed = drawing.ariaLabel || drawing.textContent.trim();
      if (!isPart && !isNamed) findings.push(`${selector(drawing)}: a drawing without a name that is not hidden`);
    }

    const { Color, flattenColors, getContrast } = axe.commons.color;
    const parse = (text, alpha = 1) => {
      const color = new Color();
      color.parseString(text);
      color.alpha *= alpha;
      return color;
    };
    // The background that the ancestors give, on a white page; null behind pictures, gradients and opacity.
    const background = (element) => {
      if (!element) return parse('rgb(255, 255, 255)');
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
      const below = background(element.parentElement);
      return below && backgroundImage === 'none' && opacity === '1' ? flattenColors(parse(backgroundColor), below) : null;
    };
    const measure = (element, words, front, back) => {
      const label = `${selector(element)} "${words.trim().slice(0, 40)}"`;
      const { fontSize, fontWeight } = getComputedStyle(element);
      const size = parseFloat(fontSize);
      const needed = !element.closest('svg') && (size >= 24 || (size >= 18.66 && fontWeight >= 700)) ? 3 : 4.5;
      const contrast = back && getContrast(back, flattenColors(front, back));
      if (!back) findings.push(`${label}: its contrast cannot be determined`);
      else if (contrast < needed) findings.push(`${label}: contrast ${(Math.floor(contrast * 100) / 100).toFixed(2)} instead of ${needed}`);
    };
    for (const element of arguments[0].map((css) => document.querySelector(css)).filter((one) => !one.closest('svg'))) {
      measure(element, element.textContent, parse(getComputedStyle(element).color), background(element));
    }
    for (const text of all('svg text')) {
      const box = text.getBoundingClientRect();
      if (!text.textContent.trim() || !box.width) continue;
      const middle = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
      let back = background(text.ownerSVGElement);
      // The shapes that are painted before the text, where its middle is.
      for (const shape of text.ownerSVGElement.querySelectorAll('rect, circle, ellipse, path, polygon')) {
        const { fill, fillOpacity, opacity } = getComputedStyle(shape);
        const isBefore = shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
        if (!back || !isBefore || fill === 'none' || !shown(shape)) continue;
        if (!shape.isPointInFill(middle.matrixTransform(shape.getScreenCTM().inverse()))) continue;
        back = fill.startsWith('url') ? null : flattenColors(parse(fill, fillOpacity * opacity), back);
      }
      const { fill, fillOpacity } = getComputedStyle(text);
      measure(text, text.textContent, parse(fill, fillOpacity), back);
    }
    for (const field of all('input:placeholder-shown, textarea:placeholder-shown')) {
      if (field.placeholder) measure(field, field.placeholder, parse(getComputedStyle(field, '::placeholder').color), background(field));
    }
    return findings;
"""

FOCUS_START = HELPERS + """
    document.activeElement?.blur();
    const root = [...document.querySelectorAll('dialog:modal')].at(-1) ?? document.body;
    const css = `a[href], area[href], button, input, select, textarea, summary, audio[controls], video[controls],
      [contenteditable], [tabindex], [onclick]`;
    const list = [...root.querySelectorAll(css)].filter((element) => {
      if (element.matches(':disabled') || element.closest('[inert]') || !shown(element)) return false;
      if (element.tabIndex < 0 && !element.matches('[onclick]:not([tabindex])')) return false;
      if (element.localName === 'summary') return element === element.parentElement.querySelector(':scope > summary');
      if (element.type !== 'radio' || element.checked) return true;
      // Tab reaches the chosen radio button of a group, or else the first.
      const isAlike = (other) => element.name && other.name === element.name && other.form === element.form && !other.disabled;
      const group = [...document.querySelectorAll('input[type=radio]')].filter((other) => other === element || isAlike(other));
      return !group.some((other) => other.checked) && group[0] === element;
    });
    // An element beside or around the focused one may draw the focus.
    const look = (element) => [element, element.parentElement, element.nextElementSibling, ...(element.labels ?? [])].map((each) => {
      if (!each) return '';
      const style = getComputedStyle(each);
      const isDrawn = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 && !/, 0\\)$/.test(style.outlineColor);
      return (isDrawn ? style.outline : 'none') + style.boxShadow;
    }).join();
    window.focusOrderCheck = { list, look, before: new Map(list.map((element) => [element, look(element)])) };
    // From here Tab goes to the first element inside.
    const own = root.getAttribute('tabindex');
    root.tabIndex = -1;
    root.focus({ preventScroll: true });
    if (own === null) root.removeAttribute('tabindex'); else root.setAttribute('tabindex', own);
    return list.map(selector);
"""

FOCUS_STEP = HELPERS + """
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();
    const { list, look, before } = window.focusOrderCheck;
    const element = document.activeElement;
    if (!element || element === document.body || element === document.documentElement) return [null, null];
    const index = list.indexOf(element);
    // Chromium lets Tab stop where there is something to scroll and nothing else to reach.
    const scrolls = element.scrollHeight > element.clientHeight || element.scrollWidth > element.clientWidth;
    if (index < 0) return [index, scrolls ? null : `${selector(element)}: Tab reaches it, and should not`];
    return [index, look(element) === before.get(element) ? `${selector(element)}: its focus is not visible` : null];
"""


def findings(browser):
    """Returns all findings. The focus moves through the page for that."""
    return static_findings(browser) + focus_order(browser)


def static_findings(browser):
    browser.script("for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();")
    browser.script(AXE_SCRIPT)
    results = browser.script("return axe.run({ resultTypes: ['violations', 'incomplete'], rules: arguments[0] })", RULES)
    found = [describe(rule["id"], node) for rule in results["violations"] for node in rule["nodes"]]
    unmeasured = [node["target"][-1] for rule in results["incomplete"] if rule["id"] == "color-contrast" for node in rule["nodes"]]
    return found + browser.script(OWN_CHECKS, unmeasured)


def describe(rule, node):
    check = (node["any"] + node["all"] + node["none"])[0]
    return f"{node['target'][-1]}: {rule}: {check['message']}"


def focus_order(browser):
    """Returns the elements that Tab does not reach, reaches in another order than that of the page, or reaches unseen.

    In a modal dialog, the way is that through the dialog.
    """
    expected = browser.script(FOCUS_START)
    visited, found = [], []
    strangers = repeated = ends = 0
    # Fields of dates and players have several stops inside.
    while repeated < 20 and len(visited) <= 2 * len(expected) and strangers <= 100:
        browser.press(Keys.TAB)
        index, finding = browser.script(FOCUS_STEP)
        if index is None:
            # Behind the last element the way begins anew, then also with elements that have a place of their own in the order.
            ends += 1
            if ends == 2:
                break
            continue
        if index < 0:
            strangers += 1
        elif visited and index == visited[-1]:
            if len(expected) == 1:
                break
            repeated += 1
            continue
        elif visited and index == visited[0]:
            break
        else:
            visited.append(index)
            repeated = 0
        if finding:
            found.append(finding)
    browser.script("delete window.focusOrderCheck; document.activeElement?.blur()")
    if repeated >= 20:
        found.append(f"{expected[visited[-1]]}: Tab does not leave it")
    found += [f"{name}: Tab does not reach it" for index, name in enumerate(expected) if index not in visited]
    found += [f"{expected[index]}: Tab reaches it more than once" for index in sorted(set(visited)) if visited.count(index) > 1]
    for before, index in zip(visited, visited[1:]):
        if index < before:
            found.append(f"{expected[index]}: Tab reaches it after {expected[before]}, which stands behind it")
    return found
