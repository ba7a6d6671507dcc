// Keeps the page and the last forecasts: the network first, then, or after 3 s, the cache.

const PAGE = ['.', 'style.css', 'icon.svg', 'map/land.json', ...('api app charts/charts charts/figure dom editor '
  + 'edits hours map/map signs spot spots words').split(' ').map((name) => `${name}.js`)];
const WANTED = /^\/(?!api\/(?!forecast\/|photos\/|spots$))/;

addEventListener('install', (event) => {
  skipWaiting();
  event.waitUntil(caches.open('page').then((cache) => cache.addAll(PAGE)));
});

addEventListener('activate', (event) => event.waitUntil(clients.claim()));

addEventListener('fetch', (event) => {
  const { pathname } = new URL(event.request.url);
  if (WANTED.test(pathname) && event.request.method === 'GET') event.respondWith(answer(event, pathname));
});

async function answer(event, path) {
  const kept = () => caches.match(event.request, { ignoreVary: true });
  const fresh = fetch(event.request).then((response) => {
    if (response.ok && path !== '/api/spots') event.waitUntil(keep(event.request, response.clone(), path));
    return response;
  });
  const slow = new Promise((resolve) => { setTimeout(resolve, 3000); }).then(kept);
  const away = fresh.then((response) => (/50[24]/.test(response.status) ? kept() : response));
  return await Promise.race([away, slow]).catch(kept) ?? fresh;
}

async function keep(request, response, path) {
  const cache = await caches.open(/^\/api\/(\w+)/.exec(path)?.[1] ?? 'page');
  const headers = new Headers(response.headers);
  headers.set('Served-From', 'cache');
  await cache.put(request, new Response(response.body, { headers }));
  const [oldest] = (await cache.keys()).slice(0, -200);
  if (oldest) await cache.delete(oldest);
}
