/* Search without a server. A browser starts no worker from a file, so the search runs in a hidden
   frame in the worker's place. Material's search knows this stand-in by its name, IFrameWorker. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.importScripts = (...urls) => this.load(urls);
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.load([url]).then(() => {
        this.ready = true;
        this.waiting.forEach((data) => this.postMessage(data));
      });
    }

    /* One script after the other: each builds on those before it. */
    async load(urls) {
      for (const url of urls) {
        await new Promise((resolve, reject) => {
          const script = this.frame.contentDocument.createElement("script");
          script.src = new URL(url, document.baseURI).href;
          script.onload = resolve;
          script.onerror = reject;
          this.frame.contentDocument.body.append(script);
        });
      }
    }

    postMessage(data) {
      if (!this.ready) {
        this.waiting.push(data);
        return;
      }
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
