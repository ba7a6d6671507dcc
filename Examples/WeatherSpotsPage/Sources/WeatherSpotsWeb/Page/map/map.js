// The map: spots and clusters as buttons over land. A unit is a degree, downwards, or 4/3 degrees of longitude.
import { button, el, svg } from '../dom.js';
import * as hours from '../hours.js';

// Pixels a unit.
const CLOSEST = 2000;
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const apart = ([x, y], other) => Math.hypot(x - other[0], y - other[1]);
// The width of the world.
const TURN = 270;
const wrapped = (x) => ((x + TURN / 2) % TURN + TURN) % TURN - TURN / 2;
const between = (low, value, high) => Math.max(low, Math.min(value, high));

// Returns middle and extent, across the antimeridian where that is shorter.
function bounds(places) {
  const east = places.map(({ x }) => x).sort((a, b) => a - b);
  const gaps = east.map((x, at) => x - (at ? east[at - 1] : east.at(-1) - TURN));
  const gap = Math.max(...gaps);
  const width = TURN - gap;
  const down = places.map(({ y }) => y).sort((a, b) => a - b);
  const height = down.at(-1) - down[0];
  return { x: east[gaps.indexOf(gap)] + width / 2, y: down[0] + height / 2, width, height };
}

// Returns groups from west to east, each around its first place; the selected one is alone.
function gathered(places, selected, onScreen, { width, height }) {
  const apart = Math.max(40, Math.sqrt(width * height / 300));
  const groups = [];
  for (const place of places) {
    const [x, y] = onScreen(place);
    if (Math.abs(x) > width / 2 + 12 || Math.abs(y) > height / 2 + 12) continue;
    const own = place.id === selected;
    const group = !own && groups.find((other) =>
      Math.abs(other.x - x) < apart && Math.abs(other.y - y) < apart && !other.own);
    if (group) group.members.push(place);
    else groups.push({ x, y, own, members: [place] });
  }
  return groups.sort((a, b) => a.x - b.x);
}

// Shows the names that touch no mark, no cluster, no other name and not the tools, to the right or else to the left; the
// selected one first. Their weather is below them where there is room.
function placeNames(groups, { width, height }) {
  const taken = groups.map(({ x, y, members: { length } }) => (length > 1 ? [x - 17, x + 17, y, 17] : [x - 12, x + 12, y, 10]));
  // The tools.
  taken.push([width / 2 - 210, width / 2, height / 2 - 30, 30]);
  for (const { button, x, y, weather, members: [{ name }, more] } of groups.toSorted((a, b) => b.own - a.own)) {
    const brief = weather.map(([text]) => text).join('').length * 7 + 36;
    const spans = [...weather.length ? [[Math.min(170, Math.max(name.length * 7, brief)), 15]] : [], [Math.min(150, name.length * 7), 8]]
      .flatMap(([long, high]) => [[x + 12, x + 22 + long, high], [x - 22 - long, x - 12, high]]);
    const free = more ? null : spans.find(([left, right, high]) => Math.max(-left, right) < width / 2
      && !taken.some((other) => other[0] < right && other[1] > left && Math.abs(other[2] - y) < other[3] + high));
    if (free) taken.push([free[0], free[1], y, free[2]]);
    button.classList.toggle('map-named', Boolean(free));
    button.classList.toggle('map-left', free?.[0] < x);
    button.classList.toggle('map-plain', free?.[2] === 8);
  }
}

// Fills the element; onSelect gets the id of a pressed spot. Returns what shows spots of all that there are.
export function makeMap(element, onSelect) {
  const world = svg('g', { id: 'map-world' });
  const globe = svg('g', world, [-TURN, TURN].map((x) => svg('use', { href: '#map-world', x })));
  const layer = el('div', svg('svg', { 'aria-hidden': true }, globe));
  const view = el('div', { class: 'map-view', tabindex: 0, role: 'application',
    'aria-label': 'Map: arrows move it, plus and minus zoom, Tab leads to spots',
    onkeydown, onwheel, onpointerdown, onpointermove }, layer);
  const list = el('dialog', { class: 'map-list', 'aria-label': 'Spots at this place', onclick: () => list.close() });
  // Pointers that are down.
  const held = new Map();
  // The middle; k: pixels a unit.
  let look = { x: 0, y: 0 };
  let size;
  let places = [];
  // Of all spots: the map goes no farther.
  let area = { x: 0, y: 0, width: TURN, height: 180 };
  // Whether these are more than the spots with edits that wait.
  let isLoaded;
  let isFitted;
  let selected;
  let marks = new Map();
  // The mark that Tab leads to.
  let current;
  let frame = 0;
  let dragged;

  const onScreen = ({ x, y }) => [wrapped(x - look.x) * look.k, (y - look.y) * look.k];

  function set(x, y, wanted) {
    if (!size) return;
    const k = between(Math.max(Math.min(size.width / TURN, size.height / 180), reach(area, 60)), wanted, CLOSEST);
    const room = Math.max(0, 90 - size.height / 2 / k);
    const [right, down] = [area.width / 2 + size.width / 4 / k, area.height / 2 + size.height / 4 / k];
    look = { x: wrapped(area.x + between(-right, wrapped(x - area.x), right)),
      y: between(-room, area.y + between(-down, y - area.y, down), room), k };
    frame ||= requestAnimationFrame(draw);
  }

  const pan = (right, down) => set(look.x + right / look.k, look.y + down / look.k, look.k);

  // Zooms; a point of the view stays where it is.
  function zoom(factor, [x, y] = [0, 0]) {
    const { k } = look;
    set(look.x, look.y, k * factor);
    pan(x * (look.k / k - 1), y * (look.k / k - 1));
  }

  const reach = ({ width, height }, closest) => Math.min((size.width - 90) / width, (size.height - 90) / height, closest);

  function enclose(some, closest) {
    const middle = some.length ? bounds(some) : area;
    set(middle.x, middle.y, reach(middle, closest));
  }

  const fit = () => enclose(places, 60);

  // Begins with all spots, and then stays where it is.
  function settle() {
    if (isFitted) return pan(0, 0);
    isFitted = size && places.length && isLoaded;
    if (size) fit();
  }

  function reveal() {
    const place = places.find(({ id }) => id === selected);
    if (!size || !place) return;
    const [x, y] = onScreen(place).map(Math.abs);
    if (x > size.width / 2 - 20 || y > size.height / 2 - 20) set(place.x, place.y, look.k);
  }

  function press({ members }) {
    if (members.length === 1) return onSelect(members[0].id);
    const { width, height } = bounds(members);
    if (Math.max(width, height) * CLOSEST > 200) return enclose(members, look.k * 4);
    list.replaceChildren(...members.map(({ id, name }) => button(name, () => onSelect(id), { dir: 'auto' })));
    list.showModal();
  }

  const mark = (id) => layer.appendChild(button(el('bdi'), ({ detail }) => dragged && detail || press(marks.get(id)), {
    class: 'map-mark',
    onfocus: () => { pan(0, 0); current = id; },
  }));

  function draw() {
    frame = 0;
    globe.style.transform = `scale(${look.k}) translate(${-look.x}px, ${-look.y}px)`;
    const before = marks;
    const groups = gathered(places, selected, onScreen, size);
    marks = new Map(groups.map((group) => [group.members[0].id, group]));
    for (const [id, gone] of before) {
      if (marks.has(id)) continue;
      if (gone.button === document.activeElement) view.focus({ preventScroll: true });
      gone.button.remove();
    }
    if (!marks.has(current)) [current] = marks.has(selected) ? [selected] : marks.keys();
    for (const [id, group] of marks) {
      const { x, y, own, members: { length, 0: { name } } } = group;
      const target = before.get(id)?.button ?? mark(id);
      group.button = target;
      group.weather = length > 1 ? [] : hours.brief(id);
      const words = length > 1 ? `${length} spots near ${name}` : [name, ...hours.parts(id).map(([text]) => text)].join(', ');
      const state = words + (length > 1 ? '' : hours.signs(id));
      if (target.dataset.state !== state) {
        target.ariaLabel = words;
        target.dataset.state = state;
        target.firstChild.replaceChildren(length > 1 ? length : name, el('small', group.weather.map(([text, sign]) => [sign, text, ' '])));
      }
      target.ariaCurrent = own || null;
      target.tabIndex = id === current ? 0 : -1;
      target.classList.toggle('map-cluster', length > 1);
      target.style.transform = `translate(${x}px, ${y}px)`;
    }
    placeNames(groups, size);
    hours.want({ map: groups.flatMap(({ members: [{ id }, more] }) => (more ? [] : id)) });
  }

  function point({ clientX, clientY }) {
    const { left, top } = layer.getBoundingClientRect();
    return [clientX - left, clientY - top];
  }

  function onkeydown(event) {
    const { key, target } = event;
    const step = KEYS[key];
    if (event.ctrlKey || event.metaKey || event.altKey || !step && !'+=-'.includes(key)) return;
    event.preventDefault();
    if (!step) return zoom(key === '-' ? 0.6 : 1.6);
    const ids = [...marks.keys()];
    const beside = target !== view && marks.get(ids[ids.indexOf(current) + step[0] + step[1]]);
    if (beside) beside.button.focus({ preventScroll: true });
    else pan(step[0] * 90, step[1] * 90);
  }

  function onwheel(event) {
    const { k } = look;
    // Firefox counts lines.
    zoom(Math.exp(event.deltaY * (event.deltaMode ? 33 : 1) * -0.004), point(event));
    // At the closest and the farthest, the page scrolls.
    if (look.k !== k) event.preventDefault();
  }

  function onpointerdown(event) {
    if (!held.size) dragged = false;
    if (!event.button) held.set(event.pointerId, point(event));
  }

  function onpointermove(event) {
    const [old, now] = [held.get(event.pointerId), point(event)];
    if (!old || !dragged && apart(old, now) < 4) return;
    view.setPointerCapture(event.pointerId);
    dragged = true;
    held.set(event.pointerId, now);
    const other = [...held.values()].find((value) => value !== now);
    if (other) zoom((apart(now, other) + 20) / (apart(old, other) + 20), other);
    else pan(old[0] - now[0], old[1] - now[1]);
  }

  window.onpointerup = window.onpointercancel = (event) => held.delete(event.pointerId);

  element.append(view, el('div', { class: 'map-tools' },
    button('+', () => zoom(2), { 'aria-label': 'Zoom in' }),
    button('−', () => zoom(0.5), { 'aria-label': 'Zoom out' }), button('All spots', fit)), list);

  new ResizeObserver(([{ contentRect }]) => {
    if (!contentRect.height) return;
    size = contentRect;
    settle();
    reveal();
  }).observe(view);

  fetch('/map/land.json').then((answer) => answer.json()).then(({ scale, rings }) => world.append(svg('path', {
    class: 'map-land', transform: `scale(${0.75 / scale} ${-1 / scale})`,
    d: rings.map((steps) => `M0 0m${steps.join(' ')}z`).join(''),
  }))).catch(() => {});

  const placesOf = (spots) => spots.map(({ id, name, longitude, latitude }) => ({ id, name, x: longitude * 0.75, y: -latitude }));

  return (spots, selectedId, all) => {
    places = placesOf(spots);
    isLoaded ||= all.length > 0;
    if (all.length) area = bounds(placesOf(all));
    settle();
    if (selectedId === selected) return;
    selected = selectedId;
    reveal();
  };
}
