// Addresses of the page: what stands behind the #. A route is a pattern such as "jobs/:job/checkpoints".

export function compile(routes) {
  return routes.map(([pattern, view]) => ({ parts: pattern.split("/").filter(Boolean), view }));
}

// The view of an address with its parameters; null if there is none. Pure.
export function match(compiled, address) {
  const path = address.replace(/^#?\/?/, "").split("?")[0];
  const given = path.split("/").filter(Boolean);
  for (const { parts, view } of compiled) {
    if (parts.length !== given.length) continue;
    const params = {};
    const fits = parts.every((part, index) => {
      if (!part.startsWith(":")) return part === given[index];
      try {
        params[part.slice(1)] = decodeURIComponent(given[index]);
      } catch {
        return false;
      }
      return true;
    });
    if (fits) return { view, params };
  }
  return null;
}

export function link(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function go(...parts) {
  location.hash = link(...parts);
}
