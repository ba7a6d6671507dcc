// Joins the parts, and holds the live connection.

import { byId, say, setText } from './dom.js';
import * as edits from './edits.js';
import * as hours from './hours.js';
import { makeMap } from './map/map.js';
import * as spot from './spot.js';
import * as spots from './spots.js';
import { use } from './words.js';

const showMap = makeMap(byId('map'), (id) => { location.hash = spots.hrefOf(id); });
const { dataset } = byId('connection');
let source;
let timer;
let wait = 500;

function refresh() {
  showMap(spots.show(spot.id), spot.id, spots.store ? spots.all() : []);
  spot.update();
}

async function load() {
  await spots.load().then(() => spots.fail(''), ({ message }) => spots.fail(message));
  refresh();
}

function route() {
  const before = spot.id;
  const [, name = ''] = location.hash.split('#/spot/');
  const id = new URLSearchParams(`id=${name}`).get('id') || null;
  spot.open(id);
  refresh();
  connect();
  if (before && !id) spots.focus(before);
}

function become(state, words) {
  dataset.state = state;
  setText('connection', words);
  refresh();
  spot.tick();
}

function connect() {
  clearTimeout(timer);
  source?.close();
  if (document.hidden) return become('', 'Connecting…');
  const wanted = new URLSearchParams({ since: spots.revision, store: spots.store, forecast: spot.id ?? '' });
  source = new EventSource(`/api/events?${wanted}`);
  source.onopen = live;
  source.onerror = lose;
  source.addEventListener('spots', ({ data }) => news(JSON.parse(data)));
  source.addEventListener('forecast', () => spot.load());
  source.addEventListener('reset', load);
}

function live() {
  wait = 500;
  if (dataset.state === 'live') return;
  become('live', 'Live');
  if (!spots.revision) load();
  edits.send();
  spot.load();
  hours.ask();
}

function lose() {
  source?.close();
  become('lost', 'Server unreachable');
  timer = setTimeout(connect, wait);
  wait = Math.min(wait * 2, 10000);
}

function news({ changes, revision }) {
  const found = spots.apply(changes, revision).find(({ id }) => id === spot.id && !edits.get(id));
  if (found) say(`This spot was ${found.spot ? 'changed' : 'deleted'}.`);
  refresh();
}

// Takes the units that were chosen last; a browser that keeps nothing begins with the first.
function chooseUnits() {
  const select = byId('units');
  try { select.value = localStorage.units ?? select.value; } catch { /* not allowed to */ }
  if (select.selectedIndex < 0) select.selectedIndex = 0;
  use(select.value);
  select.onchange = () => {
    use(select.value);
    try { localStorage.units = select.value; } catch { /* not allowed to */ }
    refresh();
    spot.redraw();
  };
}

async function start() {
  chooseUnits();
  window.onoffline = () => dataset.state === 'lost' || lose();
  window.onhashchange = route;
  document.onvisibilitychange = connect;
  spots.start(refresh, load);
  await edits.start(refresh, (id, row) => spots.apply([{ id, spot: row }])).catch(() => say('No edits can be kept.'));
  await hours.start(refresh);
  await load();
  route();
  setInterval(spot.tick, 5000);
  setInterval(spot.load, 600000);
  setInterval(hours.ask, 60000);
  const { serviceWorker: worker } = navigator;
  // Without TLS.
  if (!worker) return;
  worker.oncontrollerchange = spot.ask;
  worker.register('/sw.js').catch(() => null);
}

start();
