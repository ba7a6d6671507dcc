// Says values in words.

export function age(since) {
  const minutes = Math.floor((Date.now() - Date.parse(since)) / 60000);
  if (minutes < 1) return 'just now';
  if (minutes < 120) return `${minutes} min old`;
  return `${Math.floor(minutes / 60)} h old`;
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

export const waves = (sea) => joined(['', quantity(sea.wave_m, 'm', 1)],
  [' from ', compass(sea.wave_from_degrees)], [', every ', quantity(sea.wave_period_s, 's')]);

function format(instant, timeZone, options, language = 'en-GB') {
  try {
    return new Intl.DateTimeFormat(language, { timeZone, ...options }).format(new Date(instant));
  } catch { // a zone that this browser does not know
    return timeZone === 'UTC' ? '–' : format(instant, 'UTC', options, language);
  }
}

export const clock = (instant, zone) => format(instant, zone, { hour: '2-digit', minute: '2-digit' });
export const today = (zone, now) => format(now, zone, {}, 'sv');
export const dayName = (day) => format(day, 'UTC', { weekday: 'short', day: 'numeric', month: 'short' });
