/* Search without a server: a page opened as a file may not start a worker, so a hidden frame runs the worker's script. */
(() => {
  if (location.protocol !== "file:") return

  class IFrameWorker extends EventTarget {
    #waiting = []
    #deliver = data => this.#waiting.push(data)

    constructor(url) {
      super()
      this.frame = Object.assign(document.createElement("iframe"), { hidden: true, srcdoc: "<!doctype html>" })
      this.frame.addEventListener("load", () => this.#load(new URL(url, location.href)), { once: true })
      document.body.append(this.frame)
    }

    #load(url) {
      const inside = this.frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = Object.assign(inside.document.createElement("script"), { src: url.href })
      script.addEventListener("load", () => {
        this.#deliver = data => inside.dispatchEvent(new inside.MessageEvent("message", { data }))
        this.#waiting.splice(0).forEach(this.#deliver)
      })
      inside.document.body.append(script)
    }

    postMessage(data) {
      this.#deliver(data)
    }

    terminate() {
      this.frame.remove()
    }
  }

  window.Worker = window.IFrameWorker = IFrameWorker
})()
