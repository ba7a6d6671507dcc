extension AccessibilityCheck {
  static let structureScript = #"""
    const findings = [];
    const all = css => [...document.querySelectorAll(css)].filter(shown);

    if (!document.documentElement.lang.trim()) findings.push('html: no lang');
    if (!document.title.trim()) findings.push('html: no title');

    // A picture without text is decorative, and says so.
    const quiet = '[role=none], [role=presentation], [aria-hidden=true], [aria-hidden=true] *';
    for (const image of all('img, area[href]')) {
      if (!image.hasAttribute('alt') && !image.ariaLabel && !image.hasAttribute('aria-labelledby') && !image.matches(quiet)) {
        findings.push(`${selector(image)}: no alt`);
      }
    }
    for (const image of all('[role=img]:not(img), svg')) {
      // A drawing with texts and without a role is read text by text.
      const isRead = image.matches(':not([role])') && image.textContent.trim();
      const title = image.querySelector(':scope > title')?.textContent;
      const isNamed = image.ariaLabel || image.hasAttribute('aria-labelledby') || title?.trim() || isRead;
      // A drawing inside a button or a link is that one's matter.
      const isPart = image.closest('button, a[href], [role=button], [role=img]') !== (image.matches('[role=img]') ? image : null);
      if (!isNamed && !isPart && !image.matches(quiet)) findings.push(`${selector(image)}: a drawing without a name that is not hidden`);
    }

    const level = heading => Number(heading.ariaLevel ?? (heading.localName.match(/^h([1-6])$/)?.[1] || 2));
    const headings = all('h1, h2, h3, h4, h5, h6, [role=heading]').filter(heading => !heading.closest('[aria-hidden=true]'));
    const first = headings.filter(heading => level(heading) === 1);
    if (first.length !== 1) findings.push(`html: ${first.length} h1 instead of one`);
    headings.forEach((heading, index) => {
      const before = index ? level(headings[index - 1]) : 0;
      if (index && level(heading) > before + 1) findings.push(`${selector(heading)}: h${level(heading)} after h${before}`);
      if (!heading.textContent.trim() && !heading.ariaLabel && !heading.querySelector('img[alt]')) {
        findings.push(`${selector(heading)}: an empty heading`);
      }
    });

    // Inside these, header and footer belong to a part of the page.
    const parts = 'article, aside, main, nav, section, [role=article], [role=main], [role=region]';
    const mains = all('main, [role=main]');
    if (mains.length !== 1) findings.push(`html: ${mains.length} main instead of one`);
    const banners = all('header:not([role]), [role=banner]').filter(header => header.matches('[role]') || !header.closest(parts));
    if (banners.length !== 1) findings.push(`html: ${banners.length} header or banner instead of one`);
    const infos = all('footer:not([role]), [role=contentinfo]').filter(footer => footer.matches('[role]') || !footer.closest(parts));
    if (infos.length !== 1) findings.push(`html: ${infos.length} footer or contentinfo instead of one`);

    for (const element of all('[tabindex]')) if (element.tabIndex > 0) findings.push(`${selector(element)}: a tabindex above 0`);

    const counts = new Map();
    for (const element of document.querySelectorAll('[id]')) counts.set(element.id, (counts.get(element.id) ?? 0) + 1);
    for (const [id, count] of counts) if (count > 1) findings.push(`#${id}: ${count} elements with this id`);
    return findings;
    """#
}
