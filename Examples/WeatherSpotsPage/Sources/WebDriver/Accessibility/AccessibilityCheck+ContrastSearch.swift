extension AccessibilityCheck {
  /// The part of the script about contrast that finds the texts.
  static let contrastSearch = #"""
    // Text for screen readers alone is cut away, or far outside.
    const isCut = (element, box) => {
      if (box.right + scrollX <= 0 || box.bottom + scrollY <= 0) return true;
      for (let each = element; each && each !== document.body; each = each.parentElement) {
        const style = getComputedStyle(each);
        if (/^inset\((50|100)%\)$/.test(style.clipPath) || /^rect\([01]px/.test(style.clip)) return true;
        if (style.overflowX !== 'visible' && each instanceof HTMLElement && (each.offsetWidth <= 1 || each.offsetHeight <= 1)) return true;
      }
      return false;
    };
    const disabled = ':disabled, [aria-disabled=true], [inert]';
    const isDisabled = element => element.closest(disabled) || element.closest('label')?.control?.disabled;

    // Each text, with the style that it has.
    const texts = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const [node, element] = [walker.currentNode, walker.currentNode.parentElement];
      const unread = 'script, style, noscript, template, option, textarea, svg title, svg desc';
      if (!node.data.trim() || element.closest(unread)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      texts.push({ element, said: node.data.trim(), style: getComputedStyle(element), box: range.getBoundingClientRect() });
    }
    const silent = ['hidden', 'checkbox', 'radio', 'range', 'color', 'file', 'image'];
    for (const element of document.querySelectorAll('input, select, textarea')) {
      const said = element.selectedOptions ? [...element.selectedOptions].map(option => option.label).join(' ') : element.value;
      if (silent.includes(element.type) || !(said || element.placeholder)) continue;
      const style = said ? getComputedStyle(element) : getComputedStyle(element, '::placeholder');
      texts.push({ element, said: said || element.placeholder, style, box: element.getBoundingClientRect() });
    }

    const root = document.createElement('i');
    root.style.color = 'Canvas';
    document.documentElement.append(root);
    const paper = over(parse(getComputedStyle(root).color), [255, 255, 255]);
    root.remove();

    const findings = new Set();
    for (const { element, said, style, box } of texts) {
      if (!box.width || !box.height || !shown(element) || isDisabled(element) || isCut(element, box)) continue;
      const isDrawn = element instanceof SVGElement;
      const fill = isDrawn ? style.fill : style.webkitTextFillColor;
      const label = `${selector(element)} "${said.slice(0, 40)}"`;
      if (fill === 'none') continue;
      if (fill.startsWith('url')) {
        findings.add(`${label}: a text whose colour cannot be told`);
        continue;
      }
      const text = { element, colour: parse(fill), alpha: isDrawn ? Number(style.fillOpacity) : 1 };
      const chain = [];
      for (let each = element; each; each = each.parentElement) chain.unshift(each);
      // What cannot be seen at all is not read with difficulty.
      if (!(text.colour[3] * text.alpha) || chain.some(each => getComputedStyle(each).opacity === '0')) continue;
      const size = parseFloat(style.fontSize) * (isDrawn ? Math.abs(element.getScreenCTM?.()?.d ?? 1) : 1);
      const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
      try {
        for (const [front, back] of pairs(chain, 0, paper, text, box)) {
          const contrast = ratio(front, back);
          if (contrast >= needed) continue;
          const shownRatio = (Math.floor(contrast * 100) / 100).toFixed(2);
          findings.add(`${label}: contrast ${shownRatio} instead of ${needed.toFixed(1)}, ${hex(front)} on ${hex(back)}`);
        }
      } catch (what) {
        if (typeof what !== 'string') throw what;
        findings.add(`${label}: a text on ${what}, whose contrast cannot be told`);
      }
    }
    return [...findings];
    """#
}
