// Reads the text of a failure: what went wrong first, and which lines of the traceback are the user's own. Pure.

const FRAME = /^\s*File "([^"]+)", line (\d+)/;
const LIBRARY = /[\\/](site-packages|dist-packages|headrace|pyspark|lib[\\/]python[\d.]+)[\\/]/;

// The line that says what went wrong: the first one for our own errors, the last one of a plain traceback.
export function rootCause(text) {
  const lines = String(text ?? "").split("\n").map((line) => line.trim()).filter(Boolean);
  if (!lines.length) return "";
  if (!lines[0].startsWith("Traceback")) return lines[0];
  const flush = String(text).split("\n").filter((line) => /^\S/.test(line));
  return flush.at(-1);
}

// Lines with whether they belong to a frame of the user's program.
export function markedLines(text) {
  let own = false;
  return String(text ?? "").split("\n").map((line) => {
    const frame = FRAME.exec(line);
    if (frame) own = !LIBRARY.test(frame[1]);
    else if (!/^\s{4,}/.test(line)) own = false;
    return { line, own };
  });
}
