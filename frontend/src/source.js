// Where answers come from: recorded in this page (a report) or from the server that gave it. docs/viewer-data.md

/** @returns {Promise<{get: (path: string) => Promise<object>}>} */
export async function openSource(document) {
  const recorded = document.getElementById("answers");
  if (recorded === null) return { get: fromServer };
  const answers = JSON.parse(await unpacked(recorded.textContent.trim()));
  return {
    async get(path) {
      if (!Object.hasOwn(answers, path)) throw new Error(`not in this report: ${path}`);
      return answers[path];
    },
  };
}

async function fromServer(path) {
  const response = await fetch(`api/${path}`, { headers: { Accept: "application/json" } });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
