/* Browsers start no worker from file://. There the search runs in a hidden frame in its place. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      this.frame = frame;
      addEventListener("message", event => {
        if (event.source !== inside) return;
        const copy = new MessageEvent("message", {data: event.data});
        this.dispatchEvent(copy);
        if (this.onmessage) this.onmessage(copy);
      });
      inside.document.open();
      inside.document.write(
        '<script>postMessage = data => parent.postMessage(data, "*");' +
        "importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise(done => {" +
        'const script = document.createElement("script"); script.src = url; script.onload = done;' +
        "document.body.append(script); })), Promise.resolve());<\/script>" +
        '<script src="' + url + '"><\/script>');
      inside.document.close();
      this.ready = new Promise(resolve => { inside.onload = resolve; }); // after open(), which takes listeners away
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data})));
    }
    terminate() { this.frame.remove(); }
  };
}
