// Says values in words.

// An age in the units of the command; up to a minute it is "just now".
export function age(since) {
  const seconds = Math.round((Date.now() - Date.parse(since)) / 1000);
  if (seconds < 60) return 'just now';
  const [length, unit] = seconds < 120 ? [1, 's'] : seconds < 7200 ? [60, 'min'] : seconds < 172800 ? [3600, 'h'] : [86400, 'days'];
  return `${Math.floor(seconds / length)} ${unit} old`;
}

const POINTS = 'N NNE NE ENE E ESE SE SSE S SSW SW WSW W WNW NW NNW'.split(' ');
export const compass = (degrees) => (degrees == null ? '–' : POINTS[Math.round(degrees / 22.5) % 16]);

export function quantity(value, unit, digits = 0) {
  if (value == null) return '–';
  return `${(Number(value.toFixed(digits)) + 0).toFixed(digits).replace('-', '−')}\u00a0${unit}`;
}

const joined = (...pairs) => pairs.filter(([, value]) => value !== '–').flat().join('') || '–';

export const wind = (hour) => joined(['', quantity(hour.wind_kmh, 'km/h')],
  [' from ', compass(hour.wind_from_degrees)], [', gusts ', quantity(hour.gust_kmh, 'km/h')]);

export const waves = (sea, kind = 'wave') => joined(['', quantity(sea[`${kind}_m`], 'm', 1)],
  [' from ', compass(sea[`${kind}_from_degrees`])], [', every ', quantity(sea[`${kind}_period_s`], 's')]);

const days = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', weekday: 'short', day: 'numeric', month: 'short' });
export const dayName = (day) => days.format(new Date(day));
