// The edits that the server does not have yet, in IndexedDB: from the row `base` to `mine`; `remove`; `asks` a person
// about {theirs}; `refused` why, and what is `wrong`; `sent`, an attempt without an answer.

import { path, request } from './api.js';

export const FIELDS = ['rating', 'tags', 'visits', 'kind', 'country', 'notes'];
const NAME = 'weather-spots edits';
const others = new BroadcastChannel(NAME);
let database;
let changed;
let stored;
let records = new Map();
let timer;

const uuid = () => crypto.getRandomValues(new Uint32Array(4)).join('-');
const without = (list, other) => list.filter((item) => !other.includes(item));

export const differing = (one, other) => FIELDS.filter((field) => String(one[field]) !== String(other[field]));

// Merges two changes of `base`: visits are a counter, tags a set; of other conflicts `mine` is kept.
export function merge(base, mine, theirs) {
  const visits = Math.max(0, theirs.visits + mine.visits - base.visits);
  const kept = without(theirs.tags, without(base.tags, mine.tags));
  const merged = { ...theirs, visits, tags: [...kept, ...without(without(mine.tags, base.tags), kept)].sort() };
  const own = differing(base, mine).filter((field) => field !== 'visits' && field !== 'tags');
  for (const field of own) merged[field] = mine[field];
  return { merged, conflicts: own.filter((field) => ![base[field], mine[field]].includes(theirs[field])) };
}

export const get = (id) => records.get(id);
export const ids = () => [...records.keys()];

export const mark = ({ asks, refused, remove }) => (asks ? 'needs a decision' : refused ? 'refused'
  : remove ? 'deletion pending' : 'pending');

const done = (work) => new Promise((resolve, reject) => {
  work.onsuccess = work.oncomplete = () => resolve(work.result);
  work.onerror = work.onabort = () => reject(work.error);
});

// onStored(id, row) hears of what the server took.
export async function start(onChange, onStored) {
  changed = onChange;
  stored = onStored;
  const opening = indexedDB.open(NAME, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore('edits', { keyPath: 'id' });
  database = await done(opening);
  others.onmessage = reload;
  await reload();
}

async function reload() {
  const kept = await done(database.transaction('edits').objectStore('edits').getAll());
  records = new Map(kept.map((record) => [record.id, record]));
  changed();
}

// Changes a record, on disk; `change` returns null to remove it.
async function update(id, change) {
  const transaction = database.transaction('edits', 'readwrite', { durability: 'strict' });
  const store = transaction.objectStore('edits');
  const next = change(await done(store.get(id)));
  if (next) store.put(next);
  else store.delete(id);
  await done(transaction);
  others.postMessage('');
  await reload();
}

const amend = (id, change) => update(id, (now) => now && { ...now, ...change });

// Keeps an edit, and returns {sent}: when it has been tried.
export async function put({ mark: ignored, ...start }, wanted, remove = false) {
  const { id } = start;
  navigator.storage?.persist();
  await update(id, ({ base, mine, sent } = { base: start, mine: start }) => ({
    id, base, mine: merge(start, { ...start, ...wanted }, mine).merged, remove, sent, version: uuid(),
  }));
  return { sent: send() };
}

export const drop = (id) => update(id, () => null);

// Takes a person's decision: `mine` replaces `theirs` (null: deleted).
export async function decide({ id, base }, mine, theirs) {
  await amend(id, { base: theirs ?? { ...base, revision: null }, mine, sent: undefined, asks: null, version: uuid() });
  send();
}

// Sends what is pending, in one tab at a time; later again where that fails.
export function send() {
  clearTimeout(timer);
  const work = async () => {
    await reload();
    for (const id of ids()) await deliver(id).catch(() => { timer = setTimeout(send, 10000); });
  };
  return (navigator.locks?.request(NAME, work) ?? work()).catch(() => null);
}

const read = (id) => request(path('spots', id), { cache: 'no-store' }).then(({ data }) => data, (problem) => {
  if (problem.status !== 404) throw problem;
  return null;
});

// Writes or removes a row at its revision (null: a new one), once for a key.
const write = ({ row, revision, remove, key }) => request(path('spots', row.id), {
  method: remove ? 'DELETE' : 'PUT',
  body: remove ? null : row,
  headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key,
    ...revision === null ? { 'If-None-Match': '*' } : { 'If-Match': `"${revision}"` } },
});

// Sends one edit. An attempt without an answer is sent again as it was: by its key, the server does it once.
async function deliver(id) {
  const { base, mine, remove, version, refused, asks, sent } = get(id) ?? { asks: true };
  if (refused || asks) return null;
  let attempt = sent;
  if (!attempt) {
    const theirs = await read(id);
    const revision = theirs?.revision ?? null;
    const merging = theirs && !remove;
    const { merged, conflicts } = merging ? merge(base, mine, theirs) : { merged: mine, conflicts: [] };
    if (remove && !theirs) return settle(id, { version, mine }, null);
    if (conflicts.length || (!merging && revision !== base.revision)) return amend(id, { asks: { theirs } });
    // Of two tabs the first on disk decides; a dropped edit is not sent.
    const own = { row: merged, revision, remove, key: uuid(), mine, version };
    await update(id, (now) => now && { ...now, sent: now.sent ?? own });
    attempt = get(id)?.sent;
    if (!attempt) return null;
  }
  try {
    return await settle(id, attempt, (await write(attempt)).data);
  } catch (problem) {
    const { status, message, wrong } = problem;
    if (!(status >= 400 && status < 500)) throw problem;
    const again = [404, 412].includes(status) || get(id)?.version !== attempt.version;
    await amend(id, { sent: undefined, refused: !again && message, wrong });
    return again && deliver(id);
  }
}

// Forgets what the server took; an edit made meanwhile goes on from there.
async function settle(id, { version, mine }, row) {
  stored(id, row);
  await update(id, (now) => (now && now.version !== version
    ? { ...now, ...row && { base: row, mine: merge(mine, now.mine, row).merged }, sent: undefined } : null));
  if (get(id)) send();
}
