// Small pieces of page. Text from the server is only ever set as text.

export const find = (id) => document.getElementById(id)

/** `make('li', { class: 'x' }, 'text', child)`; an undefined child or attribute is left out. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(key, value)
  }
  element.append(...children.filter((child) => child !== undefined))
  return element
}

/** Writes only what changed: a live region that is set again would be read again. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** `850 ms`, `12.4 s`, `3 min`. */
export function duration(ms) {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  return `${Math.round(ms / 60_000)} min`
}

/** `3 min ago`, with the whole time on hover. */
export function ago(iso, nowMs = Date.now()) {
  const at = new Date(iso)
  const seconds = Math.max(0, (nowMs - at.getTime()) / 1_000)
  const units = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
  ]
  const [size, unit] = units.find(([each]) => seconds >= each) ?? [1, 's']
  const text = seconds < 5 ? 'just now' : `${Math.floor(seconds / size)} ${unit} ago`
  return make('time', { datetime: iso, title: at.toLocaleString() }, text)
}

/** Parts of text, the found ones marked. */
export function marked(parts) {
  return parts.map(({ text, marked }) => (marked ? make('mark', {}, text) : text))
}
