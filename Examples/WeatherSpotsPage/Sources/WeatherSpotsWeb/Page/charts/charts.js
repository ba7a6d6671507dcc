// The charts of the hours, and the light of the days.
import { dayLabel, figure, hourLabel, line, write } from './figure.js';
import { ARROW, turned } from '../signs.js';
import { compass, converted, quantity } from '../words.js';

// Title; least top of a scale from 0; direction; lines: [key, name, unit, digits, step of an own scale].
const CHARTS = [
  ['Temperature', 0, null, ['temperature_c', 'temperature', '°C', 1], ['apparent_c', 'feels like', '°C', 1]],
  ['Rain', 2, null, ['precipitation_mm', 'rain', 'mm', 1], ['precipitation_percent', 'likelihood', '%', 0, 25]],
  ['Wind', 20, 'wind_from_degrees', ['wind_kmh', 'wind', 'km/h', 0], ['gust_kmh', 'gusts', 'km/h', 0]],
  ['Waves', 1, 'wave_from_degrees', ['wave_m', 'waves', 'm', 1], ['swell_m', 'swell', 'm', 1]],
];
const [HOUR, SIDE, BASE, STEP, ROW] = [3600000, 44, 170, 35, 44];
const known = (value) => value != null;

function round(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 2.5, 5, 10].find((step) => step * power >= value * 0.999);
}

function hourly([title, metric, from, ...lines], hours, nights, now) {
  const [least, unit] = converted(metric, lines[0][2]);
  const given = lines.map(([key]) => hours.map((hour) => hour[key]));
  const values = given.map((some, index) => some.map((value) => (known(value) ? converted(value, lines[index][2])[0] : null)));
  const scaled = values.flatMap((some, index) => (lines[index][4] ? [] : some.filter(known)));
  if (!scaled.length) return '';
  const bottom = metric ? 0 : Math.min(...scaled);
  const step = round((Math.max(...scaled, bottom + (metric ? least : 4)) - bottom) / (bottom ? 3 : 4));
  const low = Math.floor(bottom / step) * step;
  const times = hours.map(({ instant }) => Date.parse(instant));
  const total = times.at(-1) - times[0] + HOUR;
  const height = BASE + (from ? 36 : 22);

  function draw(width) {
    const hour = (width - SIDE) / total * HOUR;
    const x = (time) => SIDE + (time - times[0]) / HOUR * hour;
    const dark = nights.map(([start, end]) => [x(Math.max(start, times[0])), x(Math.min(end, times[0] + total))]);
    const nodes = [write(SIDE - 6, 10, unit, 'end'),
      line('night', dark.map(([left, right]) => (right > left ? `M${left} 0H${right}V${BASE}H${left}z` : '')).join(''))];
    const every = hour > 4 ? 6 : 12;
    for (let tick = 0; tick < 5; tick += 1) {
      const y = BASE - tick * STEP;
      const label = String(+(low + tick * step).toFixed(2)).replace('-', '−');
      nodes.push(line('grid', `M${SIDE} ${y}H${width}`), write(SIDE - 6, y + 4, label, 'end'));
      if (title === 'Rain' && tick % 2 === 0) nodes.push(write(width, y - 3, `${tick * 25} %`, 'end'));
    }
    hours.forEach(({ day, time, [from]: degrees }, index) => {
      const left = x(times[index]);
      if (day !== hours[index - 1]?.day) {
        const room = hour * hours.findLastIndex((other) => other.day === day) - hour * index;
        const label = dayLabel(day).slice(0, hour < 2 ? 3 : 9);
        nodes.push(line('midnight', `M${left} 0V${BASE}`), write(left + 4, 14, room > label.length * 6 && label));
      }
      // In some zones the hours of the report begin at :30 or :45.
      const tick = left - time.slice(3) / 60 * hour;
      if (parseInt(time, 10) % every === 0 && tick >= SIDE) {
        nodes.push(line('grid', `M${tick} ${BASE}v5`));
        if (hour > 2 && index) nodes.push(write(tick, height - 6, time.slice(0, 2), 'middle'));
      }
      if (known(degrees) && index % Math.ceil(18 / hour) === 0 && left + 12 < width) {
        nodes.push(line('arrow', ARROW, `translate(${left + 5} ${BASE + 12}) ${turned(degrees)}`));
      }
    });
    lines.forEach(([, , , , own], which) => nodes.push(line(`line${which}`, values[which].map((value, index) => {
      if (!known(value)) return '';
      const [left, y] = [x(times[index]), BASE - STEP * (own ? value / own : (value - low) / step)];
      if (title === 'Rain' && !which) return `M${left} ${BASE}V${y}`;
      // A value between gaps is a dot.
      return known(values[which][index - 1]) ? `L${left} ${y}` : `M${left} ${y}h1`;
    }).join(''))));
    if (now >= times[0] && now < times[0] + total) nodes.push(line('now', `M${x(now)} 30V${BASE}`));
    return { nodes, points: times.map((time) => [x(time), 0, height]) };
  }

  const columns = lines.map(([key, words, unit, digits]) => [words, (hour) => quantity(hour[key], unit, digits)]);
  if (from) columns.push(['from', (hour) => compass(hour[from])]);
  if (title === 'Waves') {
    for (const [words, key] of [['every', 'wave_period_s'], ['swell every', 'swell_period_s']]) {
      columns.push([words, (hour) => quantity(hour[key], 's')]);
    }
  }
  return figure({
    title, height, hours, now, draw,
    summary: lines.flatMap(([, words, unit, digits], index) => {
      const some = given[index].filter(known).sort((a, b) => a - b);
      return some.length ? `${words} ${quantity(some[0], unit, digits)} to ${quantity(some.at(-1), unit, digits)}` : [];
    }).join(', '),
    keys: [...lines.map(([, words], index) => [words, `line${index}`]), ['night', 'night', 'M1 1H27V11H1z'],
      ...from ? [['this way is from W', 'arrow', 'M8 6H22M17 2L22 6L17 10']] : []],
    say: (hour) => columns.map(([words, cell]) => `${words} ${cell(hour)}`).join(', '),
    head: ['hour', ...columns.map(([words]) => words)],
    rows: () => hours.map((hour) => [hourLabel(hour), ...columns.map(([, cell]) => cell(hour))]),
  });
}

const MOON = ['moon is up', 'moonrise', 'moonset'];
// Each paints over the one before; at last the altitude of the sun.
const LEVELS = [
  ['night', 'day_start_utc', 'day_end_utc'],
  ...[['astronomical', -18], ['nautical', -12], ['civil', -6]].map(([kind, altitude]) =>
    [`${kind} twilight`, `${kind}_dawn`, `${kind}_dusk`, altitude]),
  ['day', 'sunrise', 'sunset', -0.833],
];

// Returns when something happens on a day, perhaps twice: instants, or, of `day.clock`, the command's clock times.
const moments = (day, name) => [day?.[name], day?.[`${name}_2`]].filter(Boolean);

export const told = (day, name) => moments(day.clock, name).join(', ') || '–';

const changes = (day, [, ...names]) => names.flatMap((name) => moments(day, name).map((time, index) =>
  [Date.parse(time), name, moments(day.clock, name)[index] ?? '–'])).sort((a, b) => a[0] - b[0]);

// Returns spans [from, to]; without any change the altitude decides.
function spans(days, level) {
  const events = days.flatMap((day) => changes(day, level));
  const above = events.length ? events[0][1] === level[2] : days[0].sun_max_altitude_deg > level[3];
  let since = above && Date.parse(days[0].day_start_utc);
  const found = [];
  for (const [time, name] of [...events, [Date.parse(days.at(-1).day_end_utc)]]) {
    const begins = name === level[1];
    if (since && !begins) found.push([since, time]);
    since = begins && (since || time);
  }
  return found;
}

function light({ astronomy: days, hours }, now) {
  const levels = LEVELS.map((level) => spans(days, level));
  const moonUp = spans(days, MOON);
  const longest = Math.max(...levels[0].map(([from, to]) => to - from));
  const lit = (day) => quantity(day.moon_illuminated_fraction * 100, '%');
  const sun = (day) => changes(day, LEVELS[4]).map(([, name, time]) => `${name} ${time}`).join(', ')
    || `sun ${day.sun_state}`.replace('_', ' ');
  const words = (day) => `${dayLabel(day.date)}: ${sun(day)}, moon ${lit(day)}`;

  function draw(width) {
    const nodes = [6, 12, 18].map((hour) =>
      write(hour * HOUR / longest * width, days.length * ROW + 12, hour, 'middle'));
    const points = days.flatMap((day, row) => {
      const y = row * ROW;
      const [start, end] = levels[0][row];
      const x = (time) => (Math.max(start, Math.min(time, end)) - start) / longest * width;
      const band = (kind, down, some) => nodes.push(line(kind,
        some.map(([from, to]) => `M${x(from)} ${y + down}H${x(to)}`).join('')));
      nodes.push(write(0, y + 12, words(day)));
      levels.forEach((some, tone) => band(`tone${tone}`, 25, some));
      band('moon', 37, moonUp);
      if (now >= start && now < end) nodes.push(line('now', `M${x(now)} ${y + 14}v28`));
      return hours.filter((hour) => hour.day === day.date)
        .map(({ instant }) => [x(Date.parse(instant)), y + 14, y + 42]);
    });
    return { nodes, points };
  }

  const columns = [...LEVELS.slice(1).toReversed(), MOON].flatMap(([, rise, set]) => [rise, set]);
  return figure({
    title: 'Daylight', height: days.length * ROW + 16, hours, now, draw, summary: words(days[0]),
    keys: [...LEVELS.map(([name], tone) => [name, `tone${tone}`]), [MOON[0], 'moon']],
    say({ instant }) {
      const time = Date.parse(instant);
      const within = (some) => some.some(([from, to]) => time >= from && time < to);
      return LEVELS[levels.findLastIndex(within)][0] + (within(moonUp) ? `, ${MOON[0]}` : '');
    },
    head: ['day', ...columns.map((key) => key.replace('_', ' ')), 'moon lit'],
    rows: () => days.map((day) => [dayLabel(day.date),
      ...columns.map((key) => told(day, key)), lit(day)]),
  });
}

// The charts begin with the present hour, or with all hours where they are all past.
export function charts(report, now) {
  const { hours, astronomy: days } = report;
  const coming = hours.filter(({ instant }) => Date.parse(instant) > now - HOUR);
  const edges = days ? [Date.parse(days[0].day_start_utc), ...spans(days, LEVELS[4]).flat(), Date.parse(days.at(-1).day_end_utc)] : [];
  const nights = edges.flatMap((edge, index) => (index % 2 ? [] : [[edge, edges[index + 1]]]));
  return [...CHARTS.map((chart) => hourly(chart, coming.length ? coming : hours, nights, now)), days ? light(report, now) : ''];
}
