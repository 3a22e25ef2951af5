// Browsers give no worker to a page that was opened from a folder. There a hidden frame stands in for it, so that the
// search works without a server and without a network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = this.onerror = this.onmessageerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (sent) => {
        const data = structuredClone(sent); // as with a worker, what is sent is a copy
        setTimeout(() => {
          const message = new MessageEvent("message", { data });
          if (this.onmessage) this.onmessage(message);
          this.dispatchEvent(message);
        });
      };
      this.ready = new Promise((loaded, failed) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onload = loaded;
        script.onerror = failed;
        inside.document.body.append(script);
      });
      this.ready.catch((fault) => this.onerror && this.onerror(fault));
    }

    postMessage(sent) {
      const data = structuredClone(sent);
      const inside = this.frame.contentWindow;
      const deliver = () => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      this.ready.then(() => setTimeout(deliver)).catch(() => {});
    }

    terminate() {
      this.frame.remove();
    }
  };
}
