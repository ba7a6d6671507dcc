// The weather of the present hour of many spots: what is stored at once, what is newer as it comes in, and what the browser has kept.

import { request } from './api.js';
import { byId } from './dom.js';
import { arrow, icon } from './signs.js';
import { age, compass, quantity, wind } from './words.js';

const HOUR = 3600000;
const PLACE = '/api/hours';
const rows = new Map();
// When the store was asked, by id.
const looked = new Map();
// When newer data were waited for.
const waited = new Map();
let changed;
let wanted = { list: [], map: [], more: [] };
// By whether newer data are waited for.
const asking = {};
const failures = {};
let timer;

const isDue = (times, id, minutes) => !(Date.now() - times.get(id) < minutes * 60000);
const end = ({ instant }) => Date.parse(instant) + HOUR;

// Returns as many ids as one request may have; a head has 32 KiB at most.
function fitting(ids, most) {
  let room = 16000;
  return ids.slice(0, most).filter((id) => (room -= encodeURIComponent(id).length) > 0);
}

const isLost = () => byId('connection').dataset.state === 'lost';

// Returns -1 when the points are unknown, and when their hour is over.
export const points = (id) => (end(rows.get(id) ?? {}) > Date.now() ? rows.get(id).points ?? -1 : -1);

// Returns what signs show, and texts do not.
export const signs = (id) => ['weather_code', 'night', 'wind_from_degrees', 'wave_from_degrees']
  .map((name) => rows.get(id)?.[name]).join();

export const isRecorded = (id) => rows.get(id)?.recorded;

export async function start(onChange) {
  changed = onChange;
  const kept = await globalThis.caches?.match(PLACE).catch(() => null);
  for (const row of await kept?.json() ?? []) rows.set(row.spot, row);
}

// Notes which spots of the `list` and of the `map` are on the screen; `more` are wanted where they are stored.
export function want(next) {
  wanted = { ...wanted, ...next };
  timer ??= setTimeout(ask, 200);
}

// Asks for what is stored, and then for newer data of what is on the screen.
export async function ask() {
  clearTimeout(timer);
  timer = null;
  if (document.hidden) return;
  await askAll(false);
  await askAll(true);
}

// Returns why there is no newer weather.
export const failure = () => failures.false || failures.true;

export function retry() {
  waited.clear();
  failures.true = failures.false = '';
  changed();
}

// Returns the ids of the next request. Newer data are waited for only where the store has been asked.
function due(waits) {
  const { list, map, more } = wanted;
  const screen = [...new Set([...list, ...map])].slice(0, 100);
  return waits ? fitting(screen.filter((id) => looked.has(id) && !rows.get(id)?.fresh && isDue(waited, id, 10)), 25)
    : fitting([...screen, ...more].filter((id) => isDue(looked, id, end(rows.get(id) ?? {}) < Date.now() ? 1 : 5)), 50);
}

async function askAll(waits) {
  let ids = due(waits);
  if (asking[waits] || !ids.length) return;
  asking[waits] = true;
  let words = '';
  try {
    for (; ids.length; ids = due(waits)) await askFor(ids, waits);
  } catch ({ message }) {
    words = isLost() ? '' : message;
  }
  asking[waits] = false;
  if (words !== (failures[waits] ?? '')) {
    failures[waits] = words;
    // This asks again, but not for the same words.
    changed();
  }
  const kept = new Response(JSON.stringify([...rows.values()].slice(-1000)));
  await globalThis.caches?.open('page').then((cache) => cache.put(PLACE, kept)).catch(() => null);
}

async function askFor(ids, waits) {
  const note = (times) => ids.forEach((id) => times.set(id, Date.now()));
  try {
    const { data } = await request(`${PLACE}?ids=${ids.map(encodeURIComponent)}${waits ? '&wait=true' : ''}`,
      { signal: AbortSignal.timeout(60000) });
    for (const row of data) {
      const old = rows.get(row.spot);
      rows.set(row.spot, row.instant || !old?.instant ? row : { ...old, fresh: row.fresh });
    }
    if (!waits) note(looked);
  } finally {
    // In trouble, too, a spot is waited for once in ten minutes.
    if (waits) note(waited);
  }
  changed();
}

const sea = ({ wave_m: height, wave_period_s: period }) =>
  [quantity(height, 'm', 1), period != null && quantity(period, 's')].filter(Boolean).join(' × ');

// Returns the weather of a spot in parts: [text, sign].
export function parts(id, showsPoints) {
  const row = rows.get(id);
  if (!row?.instant) return [[row && waited.has(id) ? `No forecast: ${row.problem}` : 'No forecast yet']];
  const since = new Date(Math.min(Date.parse(row.fetched_at), end(row)));
  return [
    [`${row.weather ?? ''} ${quantity(row.temperature_c, '°C')}`, icon(row)], [wind({ ...row, gust_kmh: null }), arrow(row.wind_from_degrees)],
    row.wave_m != null && [`${sea(row)} from ${compass(row.wave_from_degrees)}`, arrow(row.wave_from_degrees)],
    showsPoints && points(id) >= 0 && [`${row.points} points`],
    (Date.now() - since > HOUR || isLost()) && [age(since)]].filter(Boolean);
}

// Returns the same for the map: the sea or the temperature, and the wind.
export function brief(id) {
  const row = rows.get(id);
  if (!row?.instant) return [];
  return [[row.wave_m == null ? quantity(row.temperature_c, '°C') : sea(row), icon(row)],
    [quantity(row.wind_kmh, 'km/h'), arrow(row.wind_from_degrees)]];
}
