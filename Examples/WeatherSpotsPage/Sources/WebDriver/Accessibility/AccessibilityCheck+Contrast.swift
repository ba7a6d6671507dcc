extension AccessibilityCheck {
  static let contrastScript = #"""
    const pixel = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const known = new Map();
    // Returns red, green, blue up to 255, and alpha up to 1.
    const parse = text => {
      if (known.has(text)) return known.get(text);
      const plain = text.match(/^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/);
      let colour = plain && [plain[1], plain[2], plain[3], plain[4] ?? 1].map(Number);
      if (!colour) {
        pixel.clearRect(0, 0, 1, 1);
        pixel.fillStyle = text;
        pixel.fillRect(0, 0, 1, 1);
        const data = pixel.getImageData(0, 0, 1, 1).data;
        colour = [data[0], data[1], data[2], data[3] / 255];
      }
      known.set(text, colour);
      return colour;
    };
    const mix = (top, bottom, alpha) => [0, 1, 2].map(index => top[index] * alpha + bottom[index] * (1 - alpha));
    const over = (top, bottom, alpha = 1) => mix(top, bottom, top[3] * alpha);
    const luminance = colour => {
      const [red, green, blue] = colour.map(value => value / 255)
        .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const ratio = (one, other) => {
      const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05);
    };
    const hex = colour => '#' + colour.map(value => Math.round(value).toString(16).padStart(2, '0')).join('');

    // The shapes of a drawing that are painted before a text, where its middle is.
    const shapesBelow = (text, svg, box) => [...svg.querySelectorAll('rect, circle, ellipse, path, polygon')].filter(shape => {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING) || !shown(shape)) return false;
      if (shape.closest('defs, clipPath, mask, marker, pattern, symbol') || getComputedStyle(shape).fill === 'none') return false;
      const matrix = shape.getScreenCTM();
      const middle = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
      return matrix && shape.isPointInFill(middle.matrixTransform(matrix.inverse()));
    });

    // Returns all pairs of colours of a text and its background; a gradient makes one of each of its colours.
    const pairs = (chain, index, backdrop, text, box) => {
      const [element, style] = [chain[index], getComputedStyle(chain[index])];
      let bases = [over(parse(style.backgroundColor), backdrop)];
      const stops = style.backgroundImage.match(/(?:rgba?|color|oklch|oklab|lab|lch)\([^()]*\)/g) ?? [];
      if (stops.length) bases = bases.flatMap(base => stops.map(stop => over(parse(stop), base)));
      if (element instanceof SVGSVGElement) {
        for (const shape of shapesBelow(text.element, element, box)) {
          const { fill, fillOpacity, opacity } = getComputedStyle(shape);
          if (fill.startsWith('url')) throw 'a pattern';
          bases = bases.map(base => over(parse(fill), base, fillOpacity * opacity));
        }
      }
      if (style.backgroundImage.includes('url(')) throw 'a picture';
      const isLast = index === chain.length - 1;
      return bases.flatMap(base => isLast ? [[over(text.colour, base, text.alpha), base]] : pairs(chain, index + 1, base, text, box))
        .map(pair => pair.map(colour => mix(colour, backdrop, Number(style.opacity))));
    };

    """# + contrastSearch
}
