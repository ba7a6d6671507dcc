// A spot's page: its weather, sky and photos, and what the person noted.

import { path, request } from './api.js';
import { charts, told } from './charts/charts.js';
import { dayLabel, table } from './charts/figure.js';
import { button, byId, el, say, setText } from './dom.js';
import * as editor from './editor.js';
import * as edits from './edits.js';
import * as spots from './spots.js';
import { arrow } from './signs.js';
import { age, dayName, quantity, waves, wind } from './words.js';

const PARTS = { now: 'Now', noon: 'Noon', sky: 'Sun and moon', notes: 'Your notes', days: '7 days', charts: 'Hours',
  photos: 'Photos', sources: 'Sources' };
export let id = null;
let row;
let report;
let kept;
let shown;

const quiet = (text) => el('p', { class: 'quiet' }, text);

// What is replaced gives the focus to its successor.
function fill(name, ...children) {
  const part = byId(name);
  const stops = () => [...part.querySelectorAll('summary, [tabindex]')];
  const at = stops().indexOf(document.activeElement);
  part.hidden = !children.length;
  part.lastChild.replaceChildren(...children);
  stops()[at]?.focus({ preventScroll: true });
}

const facts = (values) => el('dl', Object.entries(values).map(([term, value]) =>
  el('div', el('dt', term), el('dd', { dir: 'auto' }, value))));

export function open(next) {
  id = next;
  row = report = shown = null;
  const page = byId('spot');
  page.hidden = id === null;
  document.body.dataset.view = page.hidden ? 'list' : 'spot';
  document.title = 'Weather spots';
  editor.close();
  if (page.hidden) return;
  const name = el('h2', { tabindex: -1 }, el('bdi', { id: 'name' }));
  page.replaceChildren(
    el('a', { href: '#/' }, '← All spots'), name, el('p', { id: 'place', class: 'quiet' }),
    el('p', { id: 'origin' }, 'Loading…'), el('p', { id: 'problem', role: 'status' }), el('div', { id: 'pending' }),
    ...Object.entries(PARTS).map(([part, title]) =>
      el('section', { id: part, hidden: true }, el('h3', title), el('div'))),
  );
  byId('notes').lastChild.before(editor.buttons(() => row));
  update();
  page.firstChild.scrollIntoView();
  name.focus({ preventScroll: true });
  ask();
}

// Gets the forecast of the spot on the screen: what is stored at once, and newer data where that is old.
export async function load(wait = '', isRetry = false) {
  if (!id) return;
  const wanted = id;
  const { data, headers, message } = await request(`${path('forecast', id)}?days=7${wait}`).catch((problem) => problem);
  if (wanted !== id) return;
  if (data && !(data.fetched_at < report?.fetched_at)) {
    const isNew = data.fetched_at !== report?.fetched_at;
    if (report && isNew) say('New weather.');
    kept = headers.has('Served-From');
    report = data;
    showReport(isNew);
    if (data.stale && !data.problem && !wait) load('&wait=true');
  } else if (!report) {
    setText('origin', [row?.name, 'no weather'].filter(Boolean).join(', '));
    showProblem(message);
  } else if (isRetry) showProblem(message ?? report.problem, report.recorded && RECORDED);
}

const RECORDED = 'Recorded weather, not today’s.';

// Says what failed, and offers to try again.
function showProblem(problem, ...more) {
  byId('problem').replaceChildren([problem, ...more].filter(Boolean).join(' '), ' ', problem ? button('Try again', () => {
    setText('problem', 'Asking…');
    load('&wait=true', true).then(() => byId('problem').querySelector('button')?.focus());
  }) : '');
}

const showPhotos = (wanted) => request(path('photos', wanted)).then(({ data }) => wanted === id
  && fill('photos', ...data.map(({ image, name }) => el('figure', image && el('img', { src: image, alt: name }),
    el('figcaption', name))))).catch(() => null);

// Requests weather and photos. A worker keeps only what is requested after it has begun to answer.
export function ask() {
  load();
  if (id) showPhotos(id);
}

export const redraw = () => report && showReport(true);

export function update() {
  if (id === null) return;
  const edit = edits.get(id);
  const gone = !spots.stored(id);
  row = spots.get(id) ?? row;
  const state = JSON.stringify([row, edit, gone]);
  if (state === shown) return;
  shown = state;
  setText('name', row?.name ?? 'No such spot');
  document.title = `${byId('name').textContent} – Weather spots`;
  if (row) showRow(row);
  editor.showPending(row, edit, gone);
}

function showRow({ country, kind, latitude, longitude, timezone, rating, visits, tags, notes }) {
  const point = `${latitude.toFixed(3)}, ${longitude.toFixed(3)}`;
  setText('place', [country, kind, point, timezone].filter(Boolean).join(' · '));
  fill('notes', facts({
    Rating: rating ? `★ ${rating} of 5` : 'none', Visits: visits,
    Tags: tags.join(', ') || 'none', Notes: notes || 'none',
  }));
}

export function tick() {
  if (!report) return;
  const { fetched_at: fetched, origin, stale, recorded } = report;
  const from = kept ? 'kept by this browser' : `from ${origin === 'network' ? 'the network' : origin}`;
  setText('origin', [row?.name, fetched ? `${age(fetched)}, ${from}` : 'no weather yet', stale && 'the last known',
    recorded && 'recorded data', byId('connection').dataset.state === 'lost' && 'server unreachable'].filter(Boolean).join(', '));
}

// Shows the weather of an hour; the sea is that of `near`, where the hour has none.
function weather(name, hour, when, near) {
  const { sea } = report;
  const seen = [hour, near, sea].find((some) => some?.wave_m != null) ?? {};
  const degrees = el('p', { class: 'big' }, quantity(hour.temperature_c, '°C'), ' ', el('span', hour.weather));
  fill(name, quiet(when), degrees, facts({
    'Feels like': quantity(hour.apparent_c, '°C'),
    Wind: [arrow(hour.wind_from_degrees), wind(hour)],
    Rain: `${quantity(hour.precipitation_mm, 'mm', 1)}, ${quantity(hour.precipitation_percent, '%')}`,
    Waves: sea?.state === 'available' ? [arrow(seen.wave_from_degrees), waves(seen)] : sea?.state,
    Swell: [arrow(seen.swell_from_degrees), waves(seen, 'swell')],
    Water: quantity(hour.surface_c ?? sea?.surface_c, '°C', 1),
  }));
}

function showReport(isNew) {
  const now = new Date();
  const { hours, days, astronomy, problem, recorded, attribution } = report;
  const sky = astronomy?.find((day) => now >= new Date(day.day_start_utc) && now < new Date(day.day_end_utc));
  const date = sky?.date;
  showProblem(problem, recorded && RECORDED);
  tick();
  const isNear = (some) => Math.abs(now - new Date(some?.instant)) < 3600000;
  const hour = [report.now?.hour, ...hours ?? []].find(isNear);
  if (hour) weather('now', hour, `${hour.time} there`, hours?.find(isNear));
  else fill('now');
  const fromNoon = ({ time }) => Math.abs(parseInt(time, 10) * 60 + Number(time.slice(3)) - 720);
  // A report that was kept may be of another day.
  const noon = report.day === date ? report.noon
    : hours?.filter(({ day }) => day === date).sort((a, b) => fromNoon(a) - fromNoon(b))[0];
  if (noon) weather('noon', noon, `${dayName(noon.day)}, ${noon.time}`);
  if (sky) showSky(sky);
  if (days && isNew) {
    const sea = (height, period) => [quantity(height, 'm', 1), period && quantity(period, 's')].filter(Boolean).join(', ');
    fill('days', table('7 days', ['Day', 'Weather', 'Low', 'High', 'Wind', 'Rain', 'Waves', 'Swell'], days.map((day) => [
      day.day === date ? 'Today' : dayLabel(day.day), day.skipped ? 'no such day here' : day.weather ?? '–',
      quantity(day.temperature_min_c, '°C'), quantity(day.temperature_max_c, '°C'),
      quantity(day.wind_max_kmh, 'km/h'), quantity(day.precipitation_mm, 'mm', 1),
      sea(day.wave_max_m, day.wave_period_s), sea(day.swell_max_m, day.swell_period_s)])));
  }
  if (hours && isNew) fill('charts', ...charts(report, now));
  fill('sources', ...[...attribution ?? [], `Spot: ${row?.source}`].map(quiet));
}

function showSky(day) {
  const always = { always_up: 'up all day', always_down: 'down all day' }[day.sun_state];
  fill('sky', facts({
    Sunrise: always ?? told(day, 'sunrise'), Sunset: always ?? told(day, 'sunset'),
    Moonrise: told(day, 'moonrise'), Moonset: told(day, 'moonset'),
    Moon: `${day.moon_elongation_longitude_deg < 180 ? 'waxing' : 'waning'}, `
      + `${quantity(day.moon_illuminated_fraction * 100, '%')} lit`,
  }));
}
