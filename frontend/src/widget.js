// In a notebook: the page in a frame of its own, whose questions go to the kernel as messages of the widget.

/** @param {{model: object, el: HTMLElement}} given by anywidget; returns what ends it */
function render({ model, el }) {
  const view = crypto.getRandomValues(new Uint32Array(4)).join("-"); // randomUUID is for pages by https alone
  const address = URL.createObjectURL(new Blob([model.get("_page")], { type: "text/html" }));
  const frame = Object.assign(document.createElement("iframe"), { title: "msdump", src: address + model.get("at") });
  frame.setAttribute("sandbox", "allow-scripts"); // an origin of its own: it reaches neither the notebook nor its cookies
  Object.assign(frame.style, { width: "100%", height: `${model.get("height")}px`, border: "1px solid #8886", borderRadius: "5px" });
  const ask = ({ source, data }) => {
    if (source === frame.contentWindow && typeof data?.address === "string") model.send({ view, number: data.number, address: data.address });
  };
  const answer = (content, buffers) => {
    if (content.view !== view) return;
    const { buffer, byteOffset, byteLength } = buffers[0];
    frame.contentWindow?.postMessage({ number: content.number, status: content.status, body: buffer.slice(byteOffset, byteOffset + byteLength) }, "*");
  };
  addEventListener("message", ask);
  model.on("msg:custom", answer);
  el.append(frame);
  return () => {
    removeEventListener("message", ask);
    model.off("msg:custom", answer);
    URL.revokeObjectURL(address);
  };
}

export default { render };
