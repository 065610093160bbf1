// Where the vertices of a job graph are drawn: levels from left to right, few crossings, edges past what is between.
// Pure: numbers in, numbers out.
//
//   level 0      level 1      level 2
//   [source] ──▶ [reduce] ──▶ [sink]
//       ╰─────────  ·  ──────────▲        an edge over several levels goes through places of its own

const SWEEPS = 6;

// nodes: [{ id, inputs: [id], width, height }], in any order. Answers
// { width, height, nodes: Map id -> { x, y, width, height, level }, edges: [{ source, target, points: [[x, y]] }], levels }.
export function layout(nodes, { gapX = 84, gapY = 22, margin = 20 } = {}) {
  const levels = levelsOf(nodes);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const columns = [];
  const cells = new Map();
  const place = (cell) => {
    (columns[cell.level] ??= []).push(cell);
    cells.set(cell.id, cell);
  };
  for (const node of nodes) {
    place({ id: node.id, level: levels.get(node.id), width: node.width, height: node.height, before: [], after: [] });
  }
  const edges = [];
  for (const node of nodes) {
    node.inputs.forEach((source, index) => {
      if (!byId.has(source)) return;
      edges.push(route(cells, place, source, node.id, index));
    });
  }
  order(columns);
  const found = coordinates(columns, { gapX, gapY, margin });
  return {
    ...found,
    levels: columns.length,
    nodes: new Map(nodes.map(({ id }) => [id, box(cells.get(id))])),
    edges: edges.map(({ source, target, index, way }) => ({ source, target, index, points: points(way) })),
  };
}

// The longest way from a source, as the engine lays levels out.
export function levelsOf(nodes) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const levels = new Map();
  const visiting = new Set();
  const visit = (start) => {
    const pending = [start];
    while (pending.length) {
      const id = pending[pending.length - 1];
      if (levels.has(id)) {
        pending.pop();
        continue;
      }
      visiting.add(id);
      const inputs = byId.get(id).inputs.filter((each) => byId.has(each));
      const open = inputs.filter((each) => !levels.has(each) && !visiting.has(each));
      if (open.length) {
        pending.push(...open);
        continue;
      }
      levels.set(id, 1 + Math.max(-1, ...inputs.map((each) => levels.get(each) ?? -1)));
      visiting.delete(id);
      pending.pop();
    }
  };
  for (const node of nodes) visit(node.id);
  return levels;
}

function route(cells, place, source, target, index) {
  const [from, to] = [cells.get(source), cells.get(target)];
  const way = [from];
  for (let level = from.level + 1; level < to.level; level += 1) {
    const cell = { id: `${source}>${target}#${index}@${level}`, level, width: 0, height: 10, before: [], after: [] };
    place(cell);
    way.push(cell);
  }
  way.push(to);
  for (let step = 1; step < way.length; step += 1) {
    way[step - 1].after.push(way[step]);
    way[step].before.push(way[step - 1]);
  }
  return { source, target, index, way };
}

// Sort each column by the middle of its neighbours, forth and back: few edges cross then.
function order(columns) {
  const number = () => columns.forEach((column) => column.forEach((cell, index) => (cell.rank = index)));
  number();
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forward = sweep % 2 === 0;
    const side = forward ? "before" : "after";
    const range = forward ? columns : [...columns].reverse();
    for (const column of range) {
      for (const cell of column) {
        const near = cell[side];
        cell.wish = near.length ? near.reduce((sum, each) => sum + each.rank, 0) / near.length : cell.rank;
      }
      column.sort((a, b) => a.wish - b.wish || a.rank - b.rank);
      column.forEach((cell, index) => (cell.rank = index));
    }
  }
}

function coordinates(columns, { gapX, gapY, margin }) {
  const heights = columns.map((column) => column.reduce((sum, cell) => sum + cell.height, 0) + gapY * (column.length - 1));
  const height = Math.max(0, ...heights);
  let x = margin;
  columns.forEach((column, index) => {
    const width = Math.max(0, ...column.map((cell) => cell.width));
    let y = margin + (height - heights[index]) / 2;
    for (const cell of column) {
      cell.x = x;
      cell.columnWidth = width;
      cell.y = y;
      y += cell.height + gapY;
    }
    x += width + gapX;
  });
  align(columns, gapY, margin);
  const bottom = Math.max(0, ...columns.flat().map((cell) => cell.y + cell.height));
  return { width: Math.max(0, x - gapX) + margin, height: bottom + margin };
}

// Pull cells towards the middle of their inputs, as far as the cells above and below let them.
function align(columns, gapY, margin) {
  for (const column of columns) {
    let least = margin;
    let rest = column.map((cell) => {
      const near = cell.before;
      const middle = near.length ? near.reduce((sum, each) => sum + each.y + each.height / 2, 0) / near.length : null;
      return { cell, wish: middle === null ? cell.y : middle - cell.height / 2 };
    });
    for (const { cell, wish } of rest) {
      cell.y = Math.max(least, wish);
      least = cell.y + cell.height + gapY;
    }
  }
  // Nothing above the margin, and no empty band at the top.
  const top = Math.min(...columns.flat().map((cell) => cell.y), Infinity);
  if (Number.isFinite(top)) for (const cell of columns.flat()) cell.y += margin - top;
}

function box(cell) {
  return { x: cell.x, y: cell.y, width: cell.width, height: cell.height, level: cell.level };
}

function points(way) {
  return way.flatMap((cell, index) => {
    const y = cell.y + cell.height / 2;
    if (index === 0) return [[cell.x + cell.width, y]];
    if (index === way.length - 1) return [[cell.x, y]];
    return [[cell.x, y], [cell.x + cell.columnWidth, y]];
  });
}

// The points as the data of an SVG path: level at each point, curved between.
export function curve(points) {
  const [[x0, y0], ...rest] = points;
  let path = `M${round(x0)} ${round(y0)}`;
  let [x, y] = [x0, y0];
  for (const [nextX, nextY] of rest) {
    const bend = Math.max(12, (nextX - x) / 2);
    path += nextY === y
      ? `L${round(nextX)} ${round(nextY)}`
      : `C${round(x + bend)} ${round(y)} ${round(nextX - bend)} ${round(nextY)} ${round(nextX)} ${round(nextY)}`;
    [x, y] = [nextX, nextY];
  }
  return path;
}

function round(value) {
  return Math.round(value * 10) / 10;
}
