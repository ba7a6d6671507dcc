// Says values in words.

// An age in the units of the command; up to a minute it is "just now".
export function age(since) {
  const seconds = Math.round((Date.now() - Date.parse(since)) / 1000);
  if (seconds < 60) return 'just now';
  const [length, unit] = seconds < 120 ? [1, 's'] : seconds < 7200 ? [60, 'min'] : seconds < 172800 ? [3600, 'h'] : [86400, 'days'];
  return `${Math.floor(seconds / length)} ${unit} old`;
}

const POINTS = 'N NNE NE ENE E ESE SE SSE S SSW SW WSW W WNW NW NNW'.split(' ');
export const compass = (degrees) => (degrees == null ? '–' : POINTS.at(Math.round(degrees / 22.5) % 16));

// The server's units are °C, km/h, mm, m and km; others: [name, factor, offset, digits].
const IMPERIAL = { '°C': ['°F', 1.8, 32, 0], mm: ['in', 1 / 25.4, 0, 2], m: ['ft', 1 / 0.3048, 0, 1], km: ['mi', 1 / 1.609344, 0, 1] };
const SPEEDS = { 'm/s': 3.6, knots: 1.852, mph: 1.609344 };
let chosen = {};

// Takes units in words, such as "Imperial, knots".
export function use(units) {
  const [system, speed] = units.split(', ');
  chosen = { ...system === 'Imperial' && IMPERIAL, ...SPEEDS[speed] && { 'km/h': [speed, 1 / SPEEDS[speed], 0, Number(speed === 'm/s')] } };
}

// Returns a value in the chosen unit: [number, unit, digits].
export function converted(value, unit, digits = 0) {
  const [name, factor, offset, own] = chosen[unit] ?? [unit, 1, 0, digits];
  return [value * factor + offset, name, own];
}

export function quantity(value, unit, digits) {
  if (value == null) return '–';
  const [number, name, own] = converted(value, unit, digits);
  return `${(Number(number.toFixed(own)) + 0).toFixed(own).replace('-', '−')}\u00a0${name}`;
}

const joined = (...pairs) => pairs.filter(([, value]) => value !== '–').flat().join('') || '–';

export const wind = (hour) => joined(['', quantity(hour.wind_kmh, 'km/h')],
  [' from ', compass(hour.wind_from_degrees)], [', gusts ', quantity(hour.gust_kmh, 'km/h')]);

export const waves = (sea, kind = 'wave') => joined(['', quantity(sea[`${kind}_m`], 'm', 1)],
  [' from ', compass(sea[`${kind}_from_degrees`])], [', every ', quantity(sea[`${kind}_period_s`], 's')]);

const days = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', weekday: 'short', day: 'numeric', month: 'short' });
export const dayName = (day) => days.format(new Date(day));
