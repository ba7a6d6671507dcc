// The spots with the pending edits laid over them, and their list.

import { request } from './api.js';
import { button, byId, el, say, setText } from './dom.js';
import * as edits from './edits.js';
import * as hours from './hours.js';
import { quantity } from './words.js';

const LIST = '/api/spots?limit=1000';
const BEST = 'Best now';
const links = new Map();
// Ids of items on the screen.
const seen = new Set();
const observer = new IntersectionObserver((entries) => {
  for (const { target: { dataset: { id } }, isIntersecting } of entries) seen[isIntersecting ? 'add' : 'delete'](id);
  hours.want({ list: [...seen] });
});
let rows = new Map();
export let revision = 0;
export let store = '';
let timer;
let position;
// Why there is no list.
let failed = '';
let again;
let showAll;

export const stored = (id) => rows.get(id);

export async function load() {
  const loaded = [];
  let state;
  for (let next = LIST; next;) {
    const { data, headers } = await request(next);
    loaded.push(...data);
    state ??= Number(headers.get('Larder-Revision'));
    store = headers.get('Larder-Store');
    next = /<([^>]+)>; rel="next"/.exec(headers.get('Link'))?.[1];
  }
  rows = new Map(loaded.map((row) => [row.id, row]));
  revision = state;
  keep();
}

// Notes why there is no newer list; nothing when there is one.
export function fail(words) {
  failed = words;
  if (words && rows.size) say(`No newer spots: ${words}`);
}

// Applies changes, which may come twice. Returns the new ones.
export function apply(changes, state = revision) {
  revision = Math.max(revision, state);
  keep();
  return changes.filter(({ id, spot }) => {
    if (!spot) return rows.delete(id);
    return !(rows.get(id)?.revision >= spot.revision) && rows.set(id, spot);
  });
}

// Keeps the list for a start without the server.
function keep() {
  timer ??= setTimeout(async () => {
    timer = null;
    const headers = { 'Larder-Revision': revision, 'Larder-Store': store };
    const answer = new Response(JSON.stringify([...rows.values()]), { headers });
    await globalThis.caches?.open('page').then((cache) => cache.put(LIST, answer)).catch(() => null);
  }, 300);
}

// Returns a row with its pending edit, whose state is `mark`.
export function get(id) {
  const row = rows.get(id);
  const edit = edits.get(id);
  return edit ? { ...(row ? edits.merge(edit.base, edit.mine, row).merged : edit.mine), mark: edits.mark(edit) } : row;
}

export const all = () => [...new Set([...rows.keys(), ...edits.ids()])].map(get);

const plain = (words) => words.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

const turned = (degrees) => degrees * Math.PI / 180;
const half = (from, to) => Math.sin(turned(to - from) / 2) ** 2;
const kilometres = (a, b) => 12742 * Math.asin(Math.sqrt(half(a.latitude, b.latitude)
  + Math.cos(turned(a.latitude)) * Math.cos(turned(b.latitude)) * half(a.longitude, b.longitude)));

function find({ query, country, kind, rating, tags, sort }) {
  const words = plain(query).split(/\s+/);
  const field = sort.toLowerCase();
  const order = (a, b) => {
    if (position) return a.distance_km - b.distance_km;
    if (sort === BEST) return hours.points(b.id) - hours.points(a.id);
    return field === 'rating' ? b.rating - a.rating : a[field].localeCompare(b[field]);
  };
  return all().filter((row) => {
    const text = plain([row.name, row.country, row.kind, row.notes, row.tags].join(' '));
    return [row.country, ''].includes(country) && [row.kind, ''].includes(kind) && [...row.tags, ''].includes(tags)
      && row.rating >= rating && words.every((word) => text.includes(word));
  }).map((row) => ({ ...row, distance_km: position && kilometres(position, row) }))
    .sort((a, b) => order(a, b) || a.name.localeCompare(b.name));
}

const isBest = () => byId('sort').value === BEST && !position;

export const hrefOf = (id) => `#/spot/${encodeURIComponent(id)}`;

export function start(changed, load) {
  const filters = byId('filters');
  const near = byId('near');
  const use = (next, words = '') => {
    position = next;
    near.ariaPressed = Boolean(next);
    say(words);
    changed();
  };
  again = load;
  showAll = () => {
    filters.reset();
    use(null);
  };
  filters.onsubmit = (event) => event.preventDefault();
  filters.oninput = filters.onchange = changed;
  near.onclick = () => (position ? use(null)
    : navigator.geolocation.getCurrentPosition(({ coords }) => use(coords),
      () => use(null, 'Your position is not known.')));
}

function offer(field) {
  const select = byId(field);
  const { value } = select;
  const values = [...new Set([value, ...all().flatMap((row) => row[field])])].filter(Boolean).sort();
  if (values.join() === select.dataset.values) return;
  select.dataset.values = values.join();
  select.replaceChildren(select.options[0], ...values.map((choice) => el('option', choice)));
  select.value = value;
}

function item(row, selected) {
  const { id, name, mark } = row;
  const facts = [row.country, row.kind, ...row.tags.map((tag) => `#${tag}`), row.rating && `★ ${row.rating} of 5`,
    position && quantity(row.distance_km, 'km')].filter(Boolean).join(' · ');
  if (!links.has(id)) {
    const place = el('li', { 'data-id': id }, el('a', { href: hrefOf(id) }));
    links.set(id, place.firstChild);
    observer.observe(place);
  }
  const link = links.get(id);
  const weather = hours.parts(id, isBest());
  const state = mark + facts + weather.map(([text]) => text) + hours.signs(id);
  if (link.dataset.state !== state) {
    link.replaceChildren(el('bdi', name), el('span', { class: 'quiet' }, facts),
      el('span', { class: 'weather' }, weather.map(([text, sign]) => el('span', sign, text))),
      mark ? el('span', { class: 'mark' }, mark) : '');
    link.dataset.state = state;
  }
  link.ariaCurrent = id === selected ? 'page' : null;
  return link.parentNode;
}

export function focus(id) {
  const link = links.get(id);
  (link?.isConnected ? link : byId('query')).focus();
}

// Says words, and what to do, when they differ; nothing is announced twice.
function tell(id, words, name, act) {
  const place = byId(id);
  if (place.dataset.words === words) return;
  place.dataset.words = words;
  place.replaceChildren(words, name ? button(name, act) : '');
}

// Says why the list is empty, and what to do.
function showNone(count) {
  tell('none', ...count || !store && !failed ? [''] : all().length ? ['No spot matches.', 'Show all', showAll]
    : failed ? [`No spots: ${failed}`, 'Try again', again] : ['No spots yet: weather-spots import or add stores some.']);
}

// Shows the wanted spots, and returns their rows.
export function show(selected) {
  ['country', 'kind', 'tags'].forEach(offer);
  const wanted = Object.fromEntries([...byId('filters').elements].map(({ id, value }) => [id, value]));
  const found = find(wanted);
  const list = byId('list');
  const items = new Set(found.map((row) => item(row, selected)));
  for (const element of [...list.children]) if (!items.has(element)) element.remove();
  let place = list.firstChild;
  for (const element of items) {
    if (element === place) place = place.nextSibling;
    else list.insertBefore(element, place);
  }
  const without = isBest() && found.filter(({ id }) => hours.points(id) < 0).length;
  setText('count', `${found.length} of ${all().length} spots${without ? `; ${without} without points are at the end` : ''}`
    + (found.some(({ id }) => hours.isRecorded(id)) ? '; recorded weather, not today’s' : ''));
  byId('best').hidden = !isBest();
  hours.want({ more: isBest() ? found.map(({ id }) => id) : [] });
  showNone(found.length);
  tell('late', ...hours.failure() ? [`No newer weather: ${hours.failure()}`, 'Try again', hours.retry] : ['']);
  return found;
}
