// A figure: legend, picture, cursor, table.
import { el, svg } from '../dom.js';
import { dayName } from '../words.js';

export const line = (kind, d, transform) => svg('path', { class: `chart-${kind}`, d, transform });
export const write = (x, y, words, anchor) => svg('text', { x, y, 'text-anchor': anchor }, words);
export const dayLabel = (day) => dayName(day).replace(/ \D+$/, '');
export const hourLabel = ({ day, time }) => `${dayLabel(day)}, ${time}`;

// With their roles, which a browser takes from rows that are laid out as grids.
export const table = (title, head, rows) => el('div',
  { class: 'chart-table', tabindex: 0, role: 'region', 'aria-label': title }, el('table', { role: 'table' },
    el('tr', { role: 'row' }, head.map((text) => el('th', { scope: 'col', role: 'columnheader' }, text))),
    rows.map(([first, ...more]) => el('tr', { role: 'row' }, el('th', { scope: 'row', role: 'rowheader' }, first),
      more.map((text) => el('td', { role: 'cell' }, text))))));

// draw(width) returns nodes, and for each hour where its cursor is: [x, top, bottom]. keys: [words, class, path].
export function figure({ title, summary, height, keys, hours, now, draw, say, head, rows }) {
  const picture = svg('svg', { role: 'img', 'aria-label': `${title}. ${summary}`, height });
  const stage = el('div', { class: 'chart-stage', tabindex: 0, role: 'application',
    'aria-label': `${title}: arrow keys tell each hour`, onpointermove: follow, onpointerdown: follow, onblur: hide,
    onpointerleave: ({ pointerType }) => pointerType === 'touch' || hide(), onkeydown }, picture);
  const tip = el('div', { class: 'chart-tip', 'aria-hidden': true });
  const live = el('p', { class: 'chart-live', role: 'status' });
  const cursor = line('cursor');
  let points = [];
  let at = Math.max(0, hours.findLastIndex(({ instant }) => Date.parse(instant) <= now));

  function show(index) {
    at = Math.max(0, Math.min(index, points.length - 1));
    const [x, top, bottom] = points[at];
    cursor.setAttribute('d', `M${x} ${top}V${bottom}`);
    picture.append(cursor);
    tip.textContent = `${hourLabel(hours[at])}: ${say(hours[at])}`;
    stage.append(tip);
    tip.style.left = `${Math.min(x, stage.clientWidth - tip.offsetWidth)}px`;
    tip.style.top = `${top}px`;
  }

  function hide() {
    tip.remove();
    cursor.remove();
  }

  function follow({ offsetX, offsetY }) {
    show(points.findLastIndex(([x, top]) => x <= offsetX && top <= offsetY));
  }

  function onkeydown(event) {
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: Infinity }[event.key];
    if (next === undefined || event.altKey || event.metaKey) return;
    event.preventDefault();
    show(next);
    live.textContent = tip.textContent;
  }

  new ResizeObserver(([{ contentRect: { width } }]) => {
    if (!width) return;
    hide();
    const drawn = draw(width);
    points = drawn.points;
    picture.replaceChildren(...drawn.nodes);
  }).observe(stage);

  const sample = ([words, kind, d = 'M1 6H27']) => el('span',
    svg('svg', { width: 34, height: 12, 'aria-hidden': true }, line(kind, d)), words);
  const fill = () => details.children[1] ?? details.append(table(`Table: ${title}`, head, rows()));
  const details = el('details', { ontoggle: fill }, el('summary', 'Table'));
  return el('figure', { class: `chart chart-${title.split(' ').at(-1).toLowerCase()}` },
    el('figcaption', el('strong', title), el('span', summary), el('div', [...keys, ['now', 'now']].map(sample))),
    stage, live, details);
}
