// A flame graph as rectangles: each call as wide as its part of the samples, callers above what they call. Pure.

export function flameRows(root, { least = 0.002 } = {}) {
  const boxes = [];
  let depth = 0;
  const pending = [{ node: root, left: 0, level: 0, path: "0" }];
  const whole = root.value || 1;
  while (pending.length) {
    const { node, left, level, path } = pending.pop();
    const width = node.value / whole;
    if (width < least) continue;
    depth = Math.max(depth, level + 1);
    boxes.push({ node, left, width, level, path });
    let at = left;
    (node.children ?? []).forEach((child, index) => {
      pending.push({ node: child, left: at, level: level + 1, path: `${path}.${index}` });
      at += child.value / whole;
    });
  }
  return { boxes, depth };
}

// The node at a path such as "0.2.1"; the root if it is gone.
export function nodeAt(root, path) {
  let node = root;
  for (const part of path.split(".").slice(1)) {
    node = node.children?.[Number(part)];
    if (!node) return root;
  }
  return node;
}
