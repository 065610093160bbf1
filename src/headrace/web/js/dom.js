// Elements from values. Text is only ever set as text: nothing that comes from a job can become markup.
//
//   h("td", { class: "number" }, "1,024")            makes an element
//   s("path", { d: "M0 0" })                          makes one of SVG
//   render(place, h(...))                             shows it; what is there already is changed, not replaced,
//                                                     so that focus, scroll positions and open <details> stay

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = Symbol("handlers");
const UNCHANGED = Symbol("unchanged");

export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

// Stands for an element that is shown already, under this key, and is to stay as it is.
export function unchanged(tag, key) {
  const element = s(tag, { key });
  element[UNCHANGED] = true;
  return element;
}

// A name or message that a user chose: set apart, so that its direction does not spill over.
export function named(text, props) {
  return h("bdi", props, text);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) setProp(element, name, value);
  append(element, children);
  return element;
}

function setProp(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name === "on") {
    element[HANDLERS] = value;
    for (const [event, handler] of Object.entries(value)) element[`on${event}`] = handler;
  } else if (name === "style") {
    for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
  } else if (name === "key") {
    element.dataset.key = value;
  } else if (name === "value" || name === "checked" || name === "disabled" || name === "open") {
    element[name] = value;
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child !== undefined && child !== null && child !== false) element.append(String(child));
  }
}

// Show `wanted` (a node or an array of nodes) as all there is in `place`.
export function render(place, wanted) {
  const holder = document.createDocumentFragment();
  append(holder, [wanted]);
  morphChildren(place, holder);
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.dataset?.key : undefined;
}

function isSame(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

function morphChildren(place, wanted) {
  const keyed = new Map();
  for (const child of place.children ?? []) {
    const key = keyOf(child);
    if (key !== undefined) keyed.set(key, child);
  }
  let current = place.firstChild;
  for (const next of [...wanted.childNodes]) {
    const key = keyOf(next);
    const found = key === undefined ? null : keyed.get(key);
    if (found && found !== current && isSame(found, next)) {
      place.insertBefore(found, current);
      current = found;
    }
    if (current && isSame(current, next)) {
      morph(current, next);
      current = current.nextSibling;
    } else {
      place.insertBefore(next, current);
    }
  }
  while (current) {
    const gone = current;
    current = current.nextSibling;
    gone.remove();
  }
}

function morph(old, next) {
  if (next[UNCHANGED]) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (name !== "style" && !next.hasAttribute(name) && !(old.nodeName === "DETAILS" && name === "open")) {
      old.removeAttribute(name);
    }
  }
  for (const { name, value } of next.attributes) {
    if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  // Through the object model: a style attribute written as text would break the page's policy.
  if (old.style && next.style && old.style.cssText !== next.style.cssText) old.style.cssText = next.style.cssText;
  for (const event of Object.keys(old[HANDLERS] ?? {})) old[`on${event}`] = null;
  old[HANDLERS] = next[HANDLERS];
  for (const [event, handler] of Object.entries(next[HANDLERS] ?? {})) old[`on${event}`] = handler;
  if ("disabled" in next && old.disabled !== next.disabled) old.disabled = next.disabled;
  if (old.nodeName === "SELECT" || old.nodeName === "INPUT" || old.nodeName === "TEXTAREA") {
    // What somebody is typing is theirs.
    if (old !== document.activeElement && old.nodeName !== "TEXTAREA" && next.dataset.own === undefined) {
      if (old.nodeName === "SELECT") morphChildren(old, next);
      if (old.value !== next.value) old.value = next.value;
      if (old.checked !== next.checked) old.checked = next.checked;
    }
    return;
  }
  morphChildren(old, next);
}
