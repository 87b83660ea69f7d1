// A long chain of boxes in columns, as text has lines: a window is wide, and most graphs are tall.

const GUTTER = 44; // px between two columns
const LANE = 7; // between edges that go from one to the next
const TURN = 12; // that an edge leaves a column by
const TALL = 560; // px that need no second column
const WIDE = 1.7; // width over height that is aimed at
const MOST_ACROSS = 4; // edges from a column to the next

/** layout: {width, height, at: [[box, x, y]], edges: [[id, points, label]]}; sizes: of boxes. The same or a new one. */
export function inColumns(layout, sizes) {
  const { width, height } = layout;
  const wanted = Math.round(Math.sqrt((WIDE * height) / (width + GUTTER)));
  const cuts = wanted < 2 || height < TALL ? [] : cutsOf(layout, sizes, wanted);
  if (cuts.length === 0) return layout;
  const columns = columnsOf(layout, sizes, cuts);
  const moved = (column, [x, y]) => [x + columns[column].dx, y + columns[column].dy];
  let lane = 0;
  return {
    width: columns.at(-1).right,
    height: Math.max(...columns.map(({ bottom }) => bottom)) + TURN,
    at: layout.at.map(([box, x, y]) => [box, ...moved(columnAt(cuts, y), [x, y])]),
    edges: layout.edges.map(([id, points, label]) => [id, bent(points, cuts, columns, moved, () => (lane = (lane + 1) % MOST_ACROSS)), label === null ? null : moved(columnAt(cuts, label[1]), label)]),
  };
}

const columnAt = (cuts, y) => cuts.filter((cut) => cut <= y).length;

/** Heights between boxes where few edges pass, about evenly apart. */
function cutsOf({ height, at, edges }, sizes, wanted) {
  const boxes = at.map(([box, , y]) => [y, y + sizes[box].height]).sort(([one], [other]) => one - other);
  const gaps = [];
  let bottom = boxes[0][1];
  for (const [top, end] of boxes) {
    if (top > bottom) gaps.push((bottom + top) / 2);
    bottom = Math.max(bottom, end);
  }
  const across = (cut) => edges.filter(([, points]) => {
    const ys = points.map(([, y]) => y);
    return Math.min(...ys) < cut && Math.max(...ys) > cut;
  }).length;
  const step = height / wanted;
  const cuts = [];
  for (let one = 1; one < wanted; one += 1) {
    const near = gaps.filter((gap) => Math.abs(gap - one * step) < 0.4 * step && gap > (cuts.at(-1) ?? 0) + 0.3 * step)
      .map((gap) => [gap, across(gap)]).filter(([, edgesThere]) => edgesThere <= MOST_ACROSS);
    const cost = ([gap, edgesThere]) => edgesThere + Math.abs(gap - one * step) / step * 4;
    near.sort((first, second) => cost(first) - cost(second));
    if (near.length > 0) cuts.push(near[0][0]);
  }
  return cuts;
}

/** Of each column how far it moves, and where it ends. */
function columnsOf({ at, edges, height }, sizes, cuts) {
  const columns = Array.from({ length: cuts.length + 1 }, (_, column) => ({ from: column === 0 ? 0 : cuts[column - 1], to: cuts[column] ?? height, least: Infinity, most: -Infinity }));
  const take = (column, x) => {
    columns[column].least = Math.min(columns[column].least, x);
    columns[column].most = Math.max(columns[column].most, x);
  };
  for (const [box, x, y] of at) [x, x + sizes[box].width].forEach((one) => take(columnAt(cuts, y), one));
  for (const [, points] of edges) for (const [x, y] of points) take(columnAt(cuts, y), x);
  let left = 0;
  for (const column of columns) {
    column.dx = left - column.least;
    column.dy = TURN - column.from;
    column.left = left;
    column.right = left + column.most - column.least;
    column.bottom = column.to - column.from + TURN;
    left = column.right + GUTTER;
  }
  return columns;
}

/** An edge that leaves a column at its end goes up beside it and enters the next one from above, or the other way round. */
function bent(points, cuts, columns, moved, nextLane) {
  const result = [moved(columnAt(cuts, points[0][1]), points[0])];
  for (let at = 1; at < points.length; at += 1) {
    const [[x0, y0], [x1, y1]] = [points[at - 1], points[at]];
    let column = columnAt(cuts, y0);
    const last = columnAt(cuts, y1);
    while (column !== last) {
      const way = Math.sign(last - column);
      const upper = way > 0 ? column : column - 1;
      const cut = cuts[upper];
      const x = x0 + ((x1 - x0) * (cut - y0)) / (y1 - y0);
      const lane = columns[upper].right + GUTTER / 2 + (nextLane() - (MOST_ACROSS - 1) / 2) * LANE;
      const [lower, higher] = [moved(upper, [x, cut]), moved(upper + 1, [x, cut])];
      const turn = [[lower[0], lower[1]], [lane, lower[1]], [lane, higher[1] - TURN / 2], [higher[0], higher[1] - TURN / 2]];
      result.push(...(way > 0 ? turn : turn.reverse()));
      column += way;
    }
    result.push(moved(last, [x1, y1]));
  }
  return result;
}
