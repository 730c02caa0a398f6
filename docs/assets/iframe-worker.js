/*
 * The search of the site runs in a worker. Browsers start no worker for a page that is opened as a file, so that this
 * one runs the worker's script in a hidden frame of the page.
 *
 * The page has window.IFrameWorker then, by which the script of the search knows where it is. importScripts() loads
 * scripts one after the other and gives a promise, since a frame cannot wait for them.
 */
(() => {
  if (location.protocol !== "file:") return;

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      const page = inside.document;
      page.open();
      page.write("<!DOCTYPE html><html><body></body></html>");
      page.close();
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      const load = (source) =>
        new Promise((done, failed) => {
          const script = page.createElement("script");
          script.src = source;
          script.onload = done;
          script.onerror = failed;
          page.body.appendChild(script);
        });
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      this.inside = inside;
      this.ready = load(new URL(url, document.baseURI).href);
    }

    postMessage(data) {
      this.ready.then(() => {
        const event = new this.inside.MessageEvent("message", { data });
        this.inside.dispatchEvent(event);
      });
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  }

  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
})();
