// Parts of epochs: their order, names and colours, and the columns of the time line. Pure.

export const KINDS = ["planning", "level", "spark", "publishing", "checkpoint"];

export function partClass(part) {
  return part.kind === "level" ? `part-level-${part.level % 4}` : `part-${part.kind}`;
}

export function partName(part, names, isLive = false) {
  const plain = { planning: "planning", spark: isLive ? "acknowledging" : "Spark: scheduling and shuffling", publishing: "publishing", checkpoint: "checkpoint" }[part.kind];
  if (plain) return plain;
  const vertices = names?.[part.level] ?? [];
  return vertices.length ? `level ${part.level}: ${vertices.join(", ")}` : `level ${part.level}`;
}

export function totalOf(epoch) {
  return epoch.parts.reduce((sum, part) => sum + part.duration, 0);
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : 0;
}

// New epochs behind known ones; those that were sent again replace what was known. At most `kept`.
export function merged(known, fresh, kept = 240) {
  const byEpoch = new Map(known.map((each) => [each.epoch, each]));
  for (const each of fresh) byEpoch.set(each.epoch, each);
  return [...byEpoch.values()].sort((a, b) => a.epoch - b.epoch).slice(-kept);
}
