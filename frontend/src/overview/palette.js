// A sequential palette that is even in lightness and can be read without red and green: viridis, from a short table.

// After matplotlib's table of the same name (CC0), every 32nd colour.
const stops = [[68, 1, 84], [71, 45, 123], [59, 82, 139], [44, 114, 142], [33, 145, 140], [40, 174, 128], [94, 201, 98], [173, 220, 48], [253, 231, 37]];

/** Colour of a share from 0 to 1 as [red, green, blue]. */
export function shade(share) {
  const place = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const at = Math.min(stops.length - 2, Math.floor(place));
  return stops[at].map((value, channel) => Math.round(value + (stops[at + 1][channel] - value) * (place - at)));
}

export const css = ([red, green, blue]) => `rgb(${red}, ${green}, ${blue})`;

/** Colours as a CSS gradient, for a legend. */
export const gradient = `linear-gradient(to right, ${stops.map(css).join(", ")})`;
