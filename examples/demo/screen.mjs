// The terminal: one line that is written over, keys without Enter. Without a terminal plain lines.

const clearLine = '\r\u001b[2K'

export class Screen {
  #live = false
  #keys = new Map()
  terminal = Boolean(process.stdout.isTTY && process.stdin.isTTY)

  /** A line that stays. */
  say(text = '') {
    const before = this.#live ? clearLine : ''
    this.#live = false
    process.stdout.write(`${before}${text}\n`)
  }

  /** The line that is written over. */
  live(text) {
    if (!this.terminal) return this.say(text)
    const fits = text.slice(0, (process.stdout.columns ?? 120) - 1)
    process.stdout.write(`${clearLine}${fits}`)
    this.#live = true
  }

  /** Keys arrive one by one, Ctrl-C included. */
  onKeys(keys) {
    if (!this.terminal) return
    this.#keys = new Map(Object.entries(keys))
    process.stdin.setRawMode(true)
    process.stdin.setEncoding('utf8')
    process.stdin.on('data', this.#pressed)
  }

  #pressed = (text) => {
    for (const key of text) this.#keys.get(key)?.()
  }

  close() {
    if (this.#live) process.stdout.write('\n')
    this.#live = false
    if (!this.terminal) return
    process.stdin.off('data', this.#pressed)
    process.stdin.setRawMode(false)
    process.stdin.pause()
  }
}
