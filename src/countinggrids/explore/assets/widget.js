// The view of the widget in a notebook: the page in a frame, and messages to and from it.

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-popups allow-forms allow-downloads");
  frame.title = "Map";
  frame.style.cssText = "width:100%;border:1px solid #8884;border-radius:6px";
  const resize = () => (frame.style.height = `${model.get("height")}px`);
  const send = () => frame.contentWindow?.postMessage({ countinggrids: "filters", filters: model.get("filters") }, "*");
  const listen = ({ source, data }) => {
    if (!frame.contentWindow || source !== frame.contentWindow) return;
    if (data?.countinggrids === "ready" && Object.keys(model.get("filters")).length) send();
    if (data?.countinggrids === "selection") {
      model.set("items", data.items);
      model.save_changes();
    }
  };
  resize();
  window.addEventListener("message", listen);
  model.on("change:filters", send);
  model.on("change:height", resize);
  frame.srcdoc = model.get("page");
  el.append(frame);
  return () => {
    window.removeEventListener("message", listen);
    model.off("change:filters", send);
    model.off("change:height", resize);
  };
}

export default { render };
