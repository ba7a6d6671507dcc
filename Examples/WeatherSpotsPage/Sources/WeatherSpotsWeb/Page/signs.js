// Signs: the kind of weather, and arrows.

import { svg } from './dom.js';

const CLOUD = 'M4 12h8a3 3 0 0 0 0-6A4 4 0 0 0 4 7a2.5 2.5 0 0 0 0 5z';
// By the least WMO code.
const SIGNS = {
  0: 'M8 5a3 3 0 1 0 .1 0M8 1v1M8 14v1M1 8h1M14 8h1M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1',
  2: `${CLOUD}M1 4a3 3 0 0 1 5-2`,
  3: CLOUD,
  45: 'M2 5h12M1 8h14M3 11h11',
  51: `${CLOUD}M5 14v1M8 14v2M11 14v1`,
  71: `${CLOUD}M4 15h1M7 15h1M10 15h1`,
  80: `${CLOUD}M5 14v1M8 14v2M11 14v1`,
  85: `${CLOUD}M4 15h1M7 15h1M10 15h1`,
  95: `${CLOUD}M9 9l-3 3h3l-2 4`,
};
const MOON = 'M10 2a6 6 0 1 0 5 8a5 5 0 0 1-5-8z';

const sign = (d, transform) => svg('svg', { class: 'sign', viewBox: '-8 -8 16 16', 'aria-hidden': true }, svg('path', { d, transform }));

export function icon({ weather_code: code, night }) {
  const least = Object.keys(SIGNS).findLast((some) => some <= code);
  return code == null || !least ? '' : sign(night && code < 2 ? MOON : SIGNS[least], 'translate(-8 -8)');
}

// An arrow that points where wind or waves go, which come from the degrees: from SW it points to the upper right.
export const ARROW = 'M0-7V7M-4 2L0 7L4 2';
export const turned = (degrees) => `rotate(${degrees})`;
export const arrow = (degrees) => (degrees == null ? '' : sign(ARROW, turned(degrees)));
