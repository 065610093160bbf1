// REST, and nothing else. Every number on the page comes through here.

const TOKEN = "headrace.token";
const BASE = new URL(".", document.baseURI);

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function rememberToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

async function ask(method, path, body, signal) {
  const headers = {};
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(new URL(path.replace(/^\//, ""), BASE), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      credentials: "omit",
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not respond.");
  }
  if (!response.ok) throw new ApiError(response.status, await reason(response));
  return response;
}

async function reason(response) {
  try {
    const answer = await response.json();
    return (answer.errors ?? []).join("\n") || response.statusText;
  } catch {
    return response.statusText || `status ${response.status}`;
  }
}

export async function get(path, signal) {
  return (await ask("GET", path, undefined, signal)).json();
}

export async function text(path, signal) {
  return (await ask("GET", path, undefined, signal)).text();
}

export async function send(method, path, body) {
  return (await ask(method, path, body)).json();
}

// What is not there (a job that has ended keeps less) is `fallback`; other errors are errors.
export async function getOr(path, fallback, signal) {
  try {
    return await get(path, signal);
  } catch (error) {
    if (error instanceof ApiError && [403, 404, 409, 500, 503].includes(error.status)) return fallback;
    throw error;
  }
}

// Trigger an operation and wait for its end: what it says, or an error with its cause.
export async function operate(path, body, statusPath) {
  const { "request-id": id } = await send("POST", path, body);
  for (let wait = 150; ; wait = Math.min(wait * 1.5, 2000)) {
    const answer = await get(`${statusPath}/${id}`);
    if (answer.status.id === "COMPLETED") {
      const operation = answer.operation ?? {};
      const cause = operation["failure-cause"] ?? operation.failureCause;
      if (cause) throw new ApiError(500, cause["stack-trace"] ?? cause.class);
      return operation;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
