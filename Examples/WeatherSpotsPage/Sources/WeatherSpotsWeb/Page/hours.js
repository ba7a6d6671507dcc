// The weather of the present hour of many spots: what is stored at once, what is newer as it comes in, and what the browser has kept.

import { request } from './api.js';
import { byId } from './dom.js';
import { arrow, icon } from './signs.js';
import { age, compass, quantity, wind } from './words.js';

const HOUR = 3600000;
const PLACE = '/api/hours';
const rows = new Map();
const looked = new Map(); // when the store was asked, by id
const waited = new Map(); // when newer data were waited for
let changed;
let wanted = { list: [], map: [], more: [] };
let isAsking;
let timer;

const isDue = (times, id, minutes) => !(Date.now() - times.get(id) < minutes * 60000);
const end = ({ instant }) => Date.parse(instant) + HOUR;

// Returns as many ids as one request may have; a head has 32 KiB at most.
function fitting(ids, most) {
  let room = 16000;
  return ids.slice(0, most).filter((id) => (room -= encodeURIComponent(id).length) > 0);
}

export const points = (id) => rows.get(id)?.points ?? -1;
export const isRecorded = (id) => rows.get(id)?.recorded;

export async function start(onChange) {
  changed = onChange;
  const kept = await globalThis.caches?.match(PLACE).catch(() => null);
  for (const row of await kept?.json() ?? []) rows.set(row.spot, row);
}

// Notes which spots of the `list` and of the `map` are on the screen; `more` are wanted where they are stored.
export function want(next) {
  wanted = { ...wanted, ...next };
  clearTimeout(timer);
  timer = setTimeout(ask, 200);
}

export async function ask() {
  if (isAsking || document.hidden) return;
  isAsking = true;
  try {
    if (await askNext()) {
      while (await askNext());
      const kept = new Response(JSON.stringify([...rows.values()].slice(-1000)));
      await globalThis.caches?.open('page').then((cache) => cache.put(PLACE, kept));
    }
  } catch { /* a later round asks again */ }
  isAsking = false;
}

// Sends one request: for what is stored, and when nothing is left of that, for newer data of what is on the screen.
async function askNext() {
  const { list, map, more } = wanted;
  const screen = [...new Set([...list, ...map])].slice(0, 100);
  const stored = fitting([...screen, ...more].filter((id) => isDue(looked, id, end(rows.get(id) ?? {}) < Date.now() ? 1 : 5)), 50);
  const ids = stored.length ? stored : fitting(screen.filter((id) => !rows.get(id)?.fresh && isDue(waited, id, 10)), 25);
  if (!ids.length) return false;
  const { data } = await request(`${PLACE}?ids=${ids.map(encodeURIComponent)}${stored.length ? '' : '&wait=true'}`,
    { signal: AbortSignal.timeout(60000) });
  for (const id of ids) (stored.length ? looked : waited).set(id, Date.now());
  for (const row of data) {
    const old = rows.get(row.spot);
    rows.set(row.spot, row.instant || !old?.instant ? row : { ...old, fresh: row.fresh });
  }
  changed();
  return true;
}

const sea = ({ wave_m: height, wave_period_s: period }) =>
  [quantity(height, 'm', 1), period != null && quantity(period, 's')].filter(Boolean).join(' × ');

// Returns the weather of a spot in parts: [text, sign].
export function parts(id, showsPoints) {
  const row = rows.get(id);
  if (!row?.instant) return [[waited.has(id) ? `No forecast: ${row?.problem}` : 'No forecast yet']];
  const since = new Date(Math.min(Date.parse(row.fetched_at), end(row)));
  return [
    [`${row.weather ?? ''} ${quantity(row.temperature_c, '°C')}`, icon(row)], [wind({ ...row, gust_kmh: null }), arrow(row.wind_from_degrees)],
    row.wave_m != null && [`${sea(row)} from ${compass(row.wave_from_degrees)}`, arrow(row.wave_from_degrees)], showsPoints && [`${row.points} points`],
    (Date.now() - since > HOUR || byId('connection').dataset.state === 'lost') && [age(since)]].filter(Boolean);
}

// Returns the same for the map: the sea or the temperature, and the wind.
export function brief(id) {
  const row = rows.get(id);
  if (!row?.instant) return [];
  return [[row.wave_m == null ? quantity(row.temperature_c, '°C') : sea(row), icon(row)],
    [quantity(row.wind_kmh, 'km/h'), arrow(row.wind_from_degrees)]];
}
