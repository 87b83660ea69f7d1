// Numbers as people read them.

/** Four digits; "nan", "inf" and "-inf" come as text already. */
export function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  return Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5 ? String(+value.toPrecision(4)) : value.toExponential(3).replace(/\.?0+e/, "e");
}

export function bytes(size) {
  if (size === null || size === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let place = 0;
  while (size >= 1024 && place < units.length - 1) {
    size /= 1024;
    place += 1;
  }
  return `${+size.toPrecision(3)} ${units[place]}`;
}

export const shape = (sizes) => (sizes === null ? "–" : `(${sizes.join(", ")})`);

/** As a number for sorting: text of what is not finite has its place, what was not measured comes last. */
export function sortable(value) {
  if (value === null || value === undefined) return -Infinity;
  if (value === "nan") return Infinity;
  if (value === "inf") return Number.MAX_VALUE;
  return value === "-inf" ? -Number.MAX_VALUE : value;
}
