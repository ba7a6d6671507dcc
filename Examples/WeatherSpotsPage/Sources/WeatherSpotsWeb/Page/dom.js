// Makes elements; text is always text, never markup.

// Adds parts: children, lists of them, and objects with attributes, where `on…` are listeners.
function add(element, parts) {
  for (const part of parts.flat(9)) {
    if (part?.constructor !== Object) element.append(part === false ? '' : part ?? '');
    else {
      for (const [name, value] of Object.entries(part)) {
        if (name.startsWith('on')) element[name] = value;
        else if (value != null && value !== false) element.setAttribute(name, value);
      }
    }
  }
  return element;
}

export const el = (tag, ...parts) => add(document.createElement(tag), parts);
export const svg = (tag, ...parts) => add(document.createElementNS('http://www.w3.org/2000/svg', tag), parts);
export const button = (words, onclick, more) => el('button', { type: 'button', onclick, ...more }, words);
export const byId = (id) => document.getElementById(id);

// Sets a text when it differs; nothing is announced twice.
export function setText(id, words) {
  if (byId(id).textContent !== words) byId(id).textContent = words;
}

let timer;

export function say(words) {
  setText('status', words);
  clearTimeout(timer);
  timer = setTimeout(setText, 10000, 'status', '');
}
