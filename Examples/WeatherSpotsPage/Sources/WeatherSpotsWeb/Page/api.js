// Requests to the server.

export const path = (what, id) => `/api/${what}/${encodeURIComponent(id)}`;

// Returns {data, headers}. Errors have the `status`, 0 without an answer; and what is `wrong`:
// [{field, detail}]. No answer is an "offline" event, too, unless the caller's own signal has ended the request.
export async function request(address, { body, ...more } = {}) {
  let response;
  let data;
  try {
    response = await fetch(address, {
      cache: 'no-cache', signal: AbortSignal.timeout(20000), body: body && JSON.stringify(body), ...more,
    });
    data = response.status === 204 ? null : await response.json();
  } catch {
    const isGivenUp = more.signal?.aborted;
    if (!isGivenUp) dispatchEvent(new Event('offline'));
    throw Object.assign(new Error(isGivenUp ? 'No answer in time.' : 'The server is unreachable.'), { status: 0 });
  }
  const { ok, status, headers } = response;
  if (!ok) throw Object.assign(new Error(data.detail ?? data.title), { status, wrong: data.errors });
  return { data, headers };
}
