// Editing a spot: the form, what waits to be sent, the dialogs.

import { button, byId, el, say } from './dom.js';
import * as edits from './edits.js';

let form;
// The row that the form began with.
let start;
let saved;
let deleting;
let current;

const named = (field) => field[0].toUpperCase() + field.slice(1);
const told = (value) => [value].flat().join(', ');
const actions = (...buttons) => el('p', { class: 'actions' }, buttons);

export function close() {
  form?.remove();
  form = null;
  byId('conflict')?.close();
}

// Makes the buttons of the spot whose present row `row` returns.
export function buttons(row) {
  current = row;
  return actions(
    button('Edit', () => edit(row()), { id: 'edit' }),
    button('Visits +1', () => put(row(), { visits: row().visits + 1 }), { id: 'visit' }),
    button('Delete…', () => remove(row()), { id: 'delete' }),
  );
}

function put(row, wanted, removing) {
  saved = row.id;
  return edits.put(row, wanted, removing).catch(({ message }) => say(`Not saved: ${message}`));
}

function control(field, value) {
  const number = Number.isInteger(value) && { type: 'number', min: 0, max: field === 'rating' && 5, required: true };
  const tag = field === 'notes' ? 'textarea' : 'input';
  const input = el(tag, { id: `field-${field}`, name: field, dir: 'auto' }, number);
  input.value = told(value);
  return el('label', { class: field === 'notes' && 'wide' }, named(field), input, el('span', { class: 'wrong' }));
}

function read(field, old) {
  const value = form.elements[field].value.trim();
  if (field === 'tags') return [...new Set(value.match(/[^\s,]+/g))].sort();
  return Number.isInteger(old) ? Number(value) : value.replace(/\s*\n\s*/g, ' ');
}

// Opens the form, and names what was refused of an edit.
function edit(row) {
  const refused = edits.get(row.id)?.wrong ?? [];
  if (!form || edits.get(row.id)?.refused) start = row;
  if (!form) {
    const onsubmit = (event) => {
      event.preventDefault();
      // A second edit from the same start would count visits twice.
      if (form.inert) return;
      const wanted = Object.fromEntries(edits.FIELDS.map((field) => [field, read(field, start[field])]));
      const own = form;
      own.inert = true;
      put(start, wanted).then((kept) => (kept ? finish(kept, own) : own.inert = false));
    };
    form = el('form', { id: 'editor', 'aria-label': 'Edit the spot', onsubmit },
      edits.FIELDS.map((field) => control(field, row[field])),
      actions(el('button', { id: 'save' }, 'Save'), button('Cancel', leave)));
    byId('notes').after(form);
  }
  for (const field of edits.FIELDS) {
    const input = form.elements[field];
    const { detail } = refused.find((one) => one.field === field) ?? {};
    input.ariaInvalid = Boolean(detail);
    input.nextSibling.textContent = detail ?? '';
  }
  (form.querySelector('[aria-invalid=true]') ?? form.elements.rating).focus();
}

// Closes the form when the edit was taken or waits, and keeps it open for one that is refused within a second.
async function finish({ sent }, own) {
  await Promise.race([sent, new Promise((done) => { setTimeout(done, 1000); })]);
  if (form !== own) return;
  own.inert = false;
  const { refused, asks } = edits.get(start.id) ?? {};
  if (refused) return edit(current());
  form.remove();
  form = null;
  // Whoever has gone on meanwhile stays where they are.
  if (document.activeElement === document.body && !asks) byId('edit').focus();
}

function leave() {
  close();
  byId('edit').focus();
}

// Shows what waits, was refused or has to be decided; asks at once about what was just saved.
export function showPending(row, kept, gone) {
  const { id, asks, refused, remove: removing } = kept ?? {};
  const place = byId('pending');
  place.hidden = !kept && !gone;
  place.replaceChildren();
  if (gone && !kept) {
    place.append(row ? 'Deleted elsewhere.' : 'This spot is not stored here.');
    if (deleting && deleting === row?.id) location.hash = '#/';
  }
  deleting = removing && id;
  if (!kept) return;
  const words = named(edits.mark(kept)) + (refused ? `: ${refused}` : asks ? '.' : ': not sent yet.');
  place.append(el('p', words),
    actions(asks && button('Decide…', () => ask(kept)), refused && !removing && button('Edit again', () => edit(row)),
      button('Drop my edit', () => edits.drop(id).then(leave))));
  if (saved !== id || !(asks || refused)) return;
  saved = null;
  if (asks) ask(kept);
  else if (!kept.wrong) say(words);
  else if (!form) edit(row);
}

function dialog(id, title, text, ...buttons) {
  const box = el('dialog', { id, 'aria-label': title, onclose: () => box.remove() },
    el('h2', title), text, actions(buttons.map(([words, act]) => button(words, () => {
      act?.(box);
      box.close();
    }))));
  document.body.append(box);
  box.showModal();
}

function remove(row) {
  dialog('confirm', 'Delete this spot?', el('p', el('bdi', row.name), ' and its notes will be removed.'),
    ['Keep it'], ['Delete', () => put(row, {}, true)]);
}

// Asks about a lost race, field by field where both sides changed it.
function ask(kept) {
  const { id, base, mine, remove: removing, asks } = kept;
  const { theirs } = asks;
  const whole = removing || !theirs;
  const { merged, conflicts } = whole ? { merged: theirs ?? mine, conflicts: [] } : edits.merge(base, mine, theirs);
  const value = (row, field) => el('bdi', told(row[field]) || 'none');
  const decide = (pick) => {
    for (const field of conflicts) if (!pick(field)) merged[field] = theirs[field];
    if (whole && !pick()) edits.drop(id);
    else edits.decide(kept, whole ? mine : merged, theirs);
  };
  dialog('conflict', 'Both sides changed this spot', [
    el('p', whole ? `It was ${theirs ? 'changed while you deleted' : 'deleted while you edited'} it.`
      : 'What only one side changed is merged.'),
    edits.differing(base, merged).map((field) => (conflicts.includes(field)
      ? el('fieldset', el('legend', named(field)), [['Mine: ', mine], ['Theirs: ', theirs]].map(([side, row]) =>
        el('label', el('input', { type: 'radio', name: field, checked: row === mine }), side, value(row, field))))
      : el('p', `${named(field)}: `, value(merged, field))))],
  ...whole ? [] : [['Save the choice', (box) => decide((field) => box.querySelector(`[name=${field}]`).checked)]],
  ['Keep mine', () => decide(() => true)], ['Take theirs', () => decide(() => false)], ['Decide later']);
}
